//! What lists and searches count because they cannot show it, although nothing withholds it.

use std::ffi::OsStr;
use std::fs::{File, create_dir_all, write};
use std::os::unix::ffi::OsStrExt;

use aptix_client::live::{list, search};
use aptix_model::live::{FilePage, ListFiles, SearchFiles, Skipped};

use super::{Scene, WorkspacePath};

/// Bytes of a file that is not searched.
const LARGE: u64 = (16 << 20) + 1;

fn page(scene: &Scene, call: &ListFiles) -> FilePage {
    list::list(&scene.workspace, &scene.policy(), call, &|| false).unwrap()
}

fn searched(scene: &Scene, call: SearchFiles) -> Skipped {
    let call = SearchFiles { pattern: "x".to_owned(), ..call };
    search::search(&scene.workspace, &scene.policy(), &call, &|| false).unwrap().skipped
}

/// The path of the directory below as many others.
fn deep(top: &str, levels: usize) -> String {
    format!("{top}{}", "/d".repeat(levels))
}

fn lay_out(scene: &Scene) {
    create_dir_all(scene.at(&deep("deep", 70))).unwrap();
    scene.put(&format!("{}/seen.txt", deep("deep", 61)), "x");
    scene.put("large.bin", "");
    File::options().write(true).open(scene.at("large.bin")).unwrap().set_len(LARGE).unwrap();
    for name in [b"bad\xff".as_slice(), b"co:lon"] {
        write(scene.at("").join(OsStr::from_bytes(name)), "x").unwrap();
    }
    std::os::unix::fs::symlink("large.bin", scene.at("link")).unwrap();
}

#[test]
fn lists_and_searches_count_what_they_cannot_show() {
    for (roots, prefix) in [(&["ws"][..], ""), (&["other", "ws"], "ws/")] {
        let scene = Scene::of_roots(roots);
        lay_out(&scene);
        let large = format!("{prefix}large.bin");
        // With a root's name in front, the directory is too deep for a path itself.
        let below: Vec<_> = [deep("deep", 63)].into_iter().filter(|_| prefix.is_empty()).collect();
        let listed = Skipped { too_deep: 1, bad_name: 2, paths: below.clone(), ..Skipped::default() };
        let found = page(&scene, &ListFiles::default());
        assert_eq!((found.files.len(), found.skipped), (2, listed.clone()), "{roots:?}");
        let paths = below.into_iter().chain([large]).collect();
        let all = Skipped { too_large: 1, paths, ..listed };
        assert_eq!(searched(&scene, SearchFiles::default()), all);
        let globs = vec!["*.rs".to_owned()];
        let selected = searched(&scene, SearchFiles { globs, ..SearchFiles::default() });
        assert_eq!((selected.too_large, selected.too_deep), (0, 1), "no other file was asked for");
    }
}

/// Whatever the size of the pages, each omission is counted once.
#[test]
fn pages_count_each_omission_once() {
    let scene = Scene::set();
    for top in ["a", "c", "e"] {
        create_dir_all(scene.at(&deep(top, 70))).unwrap();
    }
    for path in ["b/1", "b/2", "d/1", "d/2", "f"] {
        scene.put(path, "");
    }
    write(scene.at("d").join(OsStr::from_bytes(b"0\xff")), "").unwrap();
    for page_size in 1..=6 {
        let (mut skipped, mut page_token) = (Skipped::default(), String::new());
        loop {
            let page = page(&scene, &ListFiles { page_size, page_token, directory: None });
            skipped.append(page.skipped);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        let paths = ["a", "c", "e"].map(|top| deep(top, 63)).to_vec();
        assert_eq!(skipped, Skipped { too_deep: 3, bad_name: 1, paths, ..Skipped::default() }, "pages of {page_size}");
    }
}

/// What is withheld is neither counted nor named; a directory in which all is withheld has no name either.
#[test]
fn what_is_withheld_is_neither_counted_nor_named() {
    let scene = Scene::set();
    scene.put_policy("deny = ['vault/', 'hidden/**/*', 'secret.bin']");
    scene.put(".gitignore", "/build/\n");
    for top in ["vault", "build", "hidden"] {
        create_dir_all(scene.at(&deep(top, 70))).unwrap();
    }
    scene.put("secret.bin", "");
    File::options().write(true).open(scene.at("secret.bin")).unwrap().set_len(LARGE).unwrap();
    for skipped in [page(&scene, &ListFiles::default()).skipped, searched(&scene, SearchFiles::default())] {
        assert_eq!((skipped.too_large, &skipped.paths), (0, &Vec::new()), "{skipped:?}");
        assert!(skipped.too_deep <= 1, "{skipped:?}");
    }
}

/// Few paths are named, however much is left out.
#[test]
fn a_few_paths_are_named() {
    let scene = Scene::set();
    (0..20).for_each(|top| create_dir_all(scene.at(&deep(&format!("dir{top:02}"), 65))).unwrap());
    let directory = Some(WorkspacePath::new("dir00").unwrap());
    let one = page(&scene, &ListFiles { directory, ..ListFiles::default() }).skipped;
    assert_eq!((one.too_deep, one.paths.len()), (1, 1));
    let skipped = page(&scene, &ListFiles::default()).skipped;
    assert_eq!((skipped.too_deep, skipped.paths.len()), (20, 8));
}
