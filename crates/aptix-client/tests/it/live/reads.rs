//! What is read is what is on disk: whole, in parts, many at once, while it changes.

use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use aptix_client::live::difference::{HeldFile, differences};
use aptix_client::live::local_batch::{Described, of_differences};
use aptix_client::live::read;
use aptix_engine::digest::sha256;
use aptix_model::lines::LineNumber;
use aptix_model::live::{Encoding, FilePart, Portion, Terminators};
use aptix_model::path::DocPath;
use aptix_model::report::Withheld;

use super::{Scene, target, whole, words};

/// Whatever was saved last is what is read next, a thousand times, with whatever tool it was saved.
#[test]
fn every_read_equals_the_disk_after_every_edit() {
    let scene = Scene::set();
    scene.put("src/Main.rs", "");
    for edit in 0..1000_usize {
        let text = format!("edit {edit}\n").repeat(edit % 7) + &"x".repeat(edit * 13 % 700);
        if edit % 2 == 0 {
            scene.put("src/Main.rs", &text);
        } else {
            scene.put("src/new", &text);
            std::fs::rename(scene.at("src/new"), scene.at("src/Main.rs")).unwrap();
        }
        let file = scene.read_one(if edit % 3 == 0 { "src/Main.rs" } else { "key:ws/src/main.rs" }).unwrap();
        assert_eq!(file.content.as_deref(), Some(text.as_bytes()), "{edit}");
        assert_eq!(file.info.text.unwrap().sha256, sha256(text.as_bytes()), "{edit}");
        assert_eq!((file.info.path.as_str(), file.info.doc_path.as_str()), ("src/Main.rs", "ws/src/main.rs"));
    }
}

/// Reads at the same time, while the file is replaced, each give one version, whole.
#[test]
fn a_thousand_reads_at_once_give_whole_versions() {
    let scene = Scene::set();
    let version = |number: usize| format!("version {number}\n").repeat(2_000);
    scene.put("a.txt", version(0));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (1..).take_while(|_| !is_done.load(Ordering::Relaxed)) {
                scene.put("a.new", version(number));
                std::fs::rename(scene.at("a.new"), scene.at("a.txt")).unwrap();
            }
        });
        let reader = || {
            for _ in 0..50 {
                let file = scene.read_one("a.txt").unwrap();
                let text = String::from_utf8(file.content.unwrap()).unwrap();
                let number = text.lines().next().unwrap().strip_prefix("version ").unwrap().parse().unwrap();
                assert!(text == version(number), "a part of version {number}");
                assert_eq!(file.info.text.unwrap().sha256, sha256(text.as_bytes()));
            }
        };
        let readers: Vec<_> = (0..20).map(|_| scope.spawn(reader)).collect();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        is_done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_file_is_described_with_and_without_its_content() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::set();
    scene.put("run.sh", "a\r\nb\r\n");
    std::fs::set_permissions(scene.at("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    scene.put("image", b"a\0b");
    let info = scene.stat("run.sh").unwrap();
    let text = info.text.unwrap();
    assert_eq!((info.size_bytes, info.is_executable, text.line_count), (6, true, 2));
    assert_eq!(
        (text.terminators, text.encoding, text.sha256),
        (Terminators::Crlf, Encoding::Utf8, sha256(b"a\r\nb\r\n"))
    );
    assert_eq!(scene.read_one("run.sh").unwrap().info, info);
    let info = scene.stat("image").unwrap();
    assert_eq!((info.is_executable, info.text.unwrap().encoding), (false, Encoding::Binary));
}

/// Each part of one call is answered by itself, in order; what does not fit together is left out.
#[test]
fn parts_are_read_by_line_and_by_byte() {
    let scene = Scene::set();
    scene.put("a.txt", "one\ntwo\nthree\n");
    let large: String = (0..200_000).map(|line| format!("{line}\n")).collect();
    scene.put("large.txt", &large);
    let line = |number| LineNumber::new(number).unwrap();
    let part = |path: &str, portion| FilePart { file: target(path), portion };
    let answers = scene.read(&[
        part("a.txt", Portion::Lines(line(2), Some(line(2)))),
        part("nowhere.txt", Portion::Whole),
        part("large.txt", Portion::Whole),
        part("large.txt", Portion::Lines(line(150_000), Some(line(150_001)))),
        part("large.txt", Portion::Bytes { offset: 100, length: 0 }),
        part("large.txt", Portion::Bytes { offset: 2, length: 4 }),
    ]);
    let shown = answers.iter().map(|answer| match answer {
        Ok(file) => (file.content.as_deref().map(String::from_utf8_lossy), file.offset, file.first_line),
        Err(failure) => (Some(words(failure).into()), 0, 0),
    });
    let offset = large.find("\n149999\n").unwrap() as u64 + 1;
    let expected = [
        (Some("two\n".into()), 4, 2),
        (Some("NOT_FOUND".into()), 0, 0),
        (None, 0, 1),
        (Some("149999\n150000\n".into()), offset, 150_000),
        // A whole mebibyte, beside what is there already.
        (None, 100, 37),
        (Some("1\n2\n".into()), 2, 2),
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    let alone = scene.read(&[part("large.txt", Portion::Bytes { offset: 100, length: 0 })]).remove(0).unwrap();
    assert_eq!(alone.content.unwrap(), large.as_bytes()[100..100 + (1 << 20)]);
    assert_eq!(alone.info.text.unwrap().sha256, sha256(large.as_bytes()));
}

/// A file that is written while it is read is read again; one that is never at rest is refused by name.
#[test]
fn a_file_that_changes_while_it_is_read_is_read_again() {
    let scene = Scene::set();
    scene.put("a.txt", "begin\n");
    let read = |writes: usize| {
        let left = Cell::new(writes);
        // The first question comes before the file is opened, the next once a piece is read.
        let asked = Cell::new(0);
        let write = || {
            asked.set(asked.get() + 1);
            if asked.get() % 2 == 0 && left.get() > 0 {
                left.set(left.get() - 1);
                let mut file = std::fs::File::options().append(true).open(scene.at("a.txt")).unwrap();
                file.write_all(b"more\n").unwrap();
            }
            false
        };
        read::read(&scene.workspace, &scene.policy(), &[whole("a.txt")], &write).unwrap().remove(0)
    };
    assert_eq!(read(3).unwrap().content.unwrap(), b"begin\nmore\nmore\nmore\n");
    assert_eq!(words(&read(1000).unwrap_err()), "FILE_CHANGED");
}

/// Who does not wait any more gets no answer, and the work for it ends.
#[test]
fn a_read_ends_with_its_caller() {
    let scene = Scene::set();
    scene.put("a.txt", "x".repeat(8 << 20));
    for questions in 0..6_u32 {
        let left = Cell::new(questions);
        let is_over = || left.replace(left.get().saturating_sub(1)) == 0;
        let failure = read::read(&scene.workspace, &scene.policy(), &[whole("a.txt"), whole("a.txt")], &is_over);
        assert_eq!(words(&failure.unwrap_err()), "DEADLINE_EXCEEDED", "{questions}");
        assert_eq!(left.get(), 0, "{questions}");
    }
}

/// With several roots a path begins with its root's name, in requests and answers alike.
#[test]
fn files_of_several_roots_have_their_roots_names() {
    let scene = Scene::of_roots(&["ws", "other"]);
    scene.put("Same.txt", "here");
    super::put(&scene.place.path().join("other/Same.txt"), "there");
    for (path, text) in [("ws/Same.txt", "here"), ("other/Same.txt", "there"), ("key:other/same.txt", "there")] {
        let file = scene.read_one(path).unwrap();
        assert_eq!(file.content.unwrap(), text.as_bytes());
        assert!(
            file.info.path.ends_with("/Same.txt")
                && file.info.path.starts_with(file.info.doc_path.split('/').next().unwrap())
        );
    }
    assert_eq!(words(&scene.read_one("Same.txt").unwrap_err()), "INVALID_PATH.UNKNOWN_ROOT");
    assert_eq!(words(&scene.read_one("nowhere/Same.txt").unwrap_err()), "INVALID_PATH.UNKNOWN_ROOT");
}

/// What differs from the server's copy is a batch that names each file as every batch does: with several roots by the root.
#[test]
fn differences_of_several_roots_have_their_roots_names() {
    let scene = Scene::of_roots(&["ws", "other"]);
    scene.put("Same.txt", "here");
    super::put(&scene.place.path().join("other/Same.txt"), "there");
    let held = ["ws", "other"].map(|root| {
        let key = DocPath::new(&format!("{root}/same.txt")).unwrap();
        HeldFile::of_key(&scene.workspace, key, &format!("{root}/Same.txt"), None).unwrap()
    });
    let found = differences(&scene.workspace, &scene.policy(), &held, &|| false).unwrap();
    let Described { batch, report } = of_differences(&scene.workspace, None, &found);
    let targets: Vec<_> = batch.files.iter().map(|file| file.target.as_str()).collect();
    assert_eq!(targets, ["ws/Same.txt", "other/Same.txt"]);
    assert_eq!(
        report.files.iter().map(|file| file.doc_path.as_str()).collect::<Vec<_>>(),
        ["ws/same.txt", "other/same.txt"]
    );
}

/// What a server claims to hold of a file that it is not shown does not change what it is told: a right guess and a wrong one
/// get the same answer.
#[test]
fn the_comparison_answers_no_guess_at_what_is_withheld() {
    let scene = Scene::set();
    for (path, text) in
        [("a.txt", "guess me\n"), (".env", "KEY=1\n"), (".ignore", "kept.txt\n"), ("kept.txt", "mine\n")]
    {
        scene.put(path, text);
    }
    let told = |path: &str, held: &[u8]| {
        let key = DocPath::new(&format!("ws/{path}")).unwrap();
        let held = HeldFile::of_key(&scene.workspace, key, path, Some(sha256(held))).unwrap();
        let found = differences(&scene.workspace, &scene.policy(), &[held], &|| false).unwrap();
        let Described { batch, report } = of_differences(&scene.workspace, None, &found);
        (batch, report)
    };
    let cases = [
        ("excerpts = 'after_approval'", "a.txt", &b"guess me\n"[..], Withheld::Unapproved),
        ("reads = 'none'", "a.txt", b"guess me\n", Withheld::Reads),
        ("deny = ['a.txt']", "a.txt", b"guess me\n", Withheld::Denied),
        ("", ".env", b"KEY=1\n", Withheld::Secret),
        ("", "kept.txt", b"mine\n", Withheld::Ignored),
    ];
    for (policy, path, content, why) in cases {
        scene.put_policy(policy);
        let (right, wrong) = (told(path, content), told(path, b"a guess"));
        assert_eq!(right, wrong, "{policy}: {path}");
        assert_eq!(right.1.files.first().and_then(|file| file.withheld), Some(why), "{policy}: {path}");
    }
    // The control: of a file that the server may read, nothing is told while its copy is right.
    scene.put_policy("");
    assert!(told("a.txt", b"guess me\n").1.files.is_empty());
    assert_eq!(told("a.txt", b"a guess").1.files.len(), 1);
}
