//! Lists of files, page by page.

use std::os::unix::ffi::OsStrExt;

use aptix_client::live::list;
use aptix_model::live::{FilePage, ListFiles};

use super::{Scene, WorkspacePath, words};

fn call(directory: &str, page_size: usize, page_token: &str) -> ListFiles {
    let directory = Some(directory).filter(|path| !path.is_empty()).map(|path| WorkspacePath::new(path).unwrap());
    ListFiles { directory, page_size, page_token: page_token.to_owned() }
}

fn page(scene: &Scene, call: &ListFiles) -> FilePage {
    list::list(&scene.workspace, &scene.policy(), call, &|| false).unwrap()
}

/// The paths of all pages of a directory.
fn all(scene: &Scene, directory: &str, page_size: usize) -> Vec<String> {
    let (mut paths, mut token) = (Vec::new(), String::new());
    loop {
        let page = page(scene, &call(directory, page_size, &token));
        assert!(page.files.len() <= page_size);
        paths.extend(page.files.into_iter().map(|file| file.path));
        if page.next_page_token.is_empty() {
            return paths;
        }
        token = page.next_page_token;
    }
}

/// Whatever the size of the pages, each file comes once, in the order of the names.
#[test]
fn every_file_comes_once_in_pages_of_any_size() {
    let scene = Scene::set();
    let paths = ["a/b/c.txt", "a/b.txt", "a.txt", "a-b/x", "B/x", "b/x/y/z", "b/x/y.z", "z"];
    paths.iter().for_each(|path| scene.put(path, path));
    let expected = ["B/x", "a/b/c.txt", "a/b.txt", "a-b/x", "a.txt", "b/x/y/z", "b/x/y.z", "z"];
    for size in 1..=9 {
        assert_eq!(all(&scene, "", size), expected, "pages of {size}");
        assert_eq!(all(&scene, "b", size), ["b/x/y/z", "b/x/y.z"], "pages of {size}");
    }
    let first = page(&scene, &call("", 0, ""));
    assert_eq!((first.files.len(), first.next_page_token.as_str()), (8, ""));
    let file = &first.files[1];
    assert_eq!((file.doc_path.as_str(), file.size_bytes, file.is_executable), ("ws/a/b/c.txt", 9, false));
    assert_eq!(file.text, None, "no file is read for a list");
}

/// A list goes on where it was, whatever happened to the file at which it was.
#[test]
fn a_list_goes_on_although_files_come_and_go() {
    let scene = Scene::set();
    ["a/1", "a/2", "b/1", "b/2", "c"].iter().for_each(|path| scene.put(path, ""));
    let first = page(&scene, &call("", 3, ""));
    assert_eq!(first.files.last().unwrap().path, "b/1");
    std::fs::remove_dir_all(scene.at("b")).unwrap();
    scene.put("a/3", "");
    scene.put("bb", "");
    let rest = page(&scene, &call("", 3, &first.next_page_token));
    assert_eq!(rest.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["bb", "c"]);
}

/// A directory of more files than are held at a time.
#[test]
fn a_directory_of_any_size_is_listed() {
    let scene = Scene::set();
    std::fs::create_dir(scene.at("many")).unwrap();
    let count = 40_000;
    (0..count).for_each(|number| std::fs::write(scene.at(&format!("many/{number:05}")), "").unwrap());
    let last = page(&scene, &call("", 1000, &format!("disk:many/{:05}", count - 3)));
    assert_eq!(last.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["many/39998", "many/39999"]);
    let paths = all(&scene, "many", 1000);
    assert_eq!(paths.len(), count);
    assert!(paths.iter().enumerate().all(|(number, path)| *path == format!("many/{number:05}")));
}

/// Names that no path can have, links, and what is no file, are left out.
#[test]
fn what_cannot_be_read_is_not_listed() {
    let scene = Scene::set();
    scene.put("a.txt", "");
    scene.put("dir/b.txt", "");
    for name in [b"bad\xff".as_slice(), b"co:lon", b"blank "] {
        std::fs::write(scene.at("").join(std::ffi::OsStr::from_bytes(name)), "").unwrap();
    }
    std::os::unix::fs::symlink("a.txt", scene.at("link")).unwrap();
    std::os::unix::fs::symlink("dir", scene.at("dirlink")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(scene.at("socket")).unwrap();
    assert_eq!(all(&scene, "", 10), ["a.txt", "dir/b.txt"]);
}

/// Several roots are listed one after the other, and one of them by its name.
#[test]
fn several_roots_are_listed_by_name() {
    let scene = Scene::of_roots(&["ws", "other"]);
    scene.put("a", "");
    scene.put("d/b", "");
    super::put(&scene.place.path().join("other/z"), "");
    for size in 1..4 {
        assert_eq!(all(&scene, "", size), ["other/z", "ws/a", "ws/d/b"], "pages of {size}");
        assert_eq!(all(&scene, "ws", size), ["ws/a", "ws/d/b"], "pages of {size}");
        assert_eq!(all(&scene, "ws/d", size), ["ws/d/b"], "pages of {size}");
    }
}

#[test]
fn a_list_that_cannot_be_made_is_refused_by_name() {
    let scene = Scene::of_roots(&["ws", "other"]);
    scene.put("d/b", "");
    scene.put("d/c", "");
    let token = page(&scene, &call("ws/d", 1, "")).next_page_token;
    for (directory, token, expected) in [
        ("nowhere", "", "INVALID_PATH.UNKNOWN_ROOT"),
        ("ws/nowhere", "", "NOT_FOUND"),
        ("ws/d", "other", "INVALID_REQUEST"),
        ("other", token.as_str(), "INVALID_REQUEST"),
    ] {
        let answer = list::list(&scene.workspace, &scene.policy(), &call(directory, 1, token), &|| false);
        assert_eq!(words(&answer.unwrap_err()), expected, "{directory}");
    }
    let over = list::list(&scene.workspace, &scene.policy(), &call("ws/d", 1, ""), &|| true);
    assert_eq!(words(&over.unwrap_err()), "DEADLINE_EXCEEDED");
}
