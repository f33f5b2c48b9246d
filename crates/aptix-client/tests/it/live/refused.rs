//! What is not shown, and the word for it.

use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use aptix_client::live::{list, search};
use aptix_model::live::{ListFiles, SearchFiles};

use super::odd_files::{self, TEXT};
use super::{Scene, words};

/// Files of which a server sees nothing, those with content first, and what it hears instead.
const WITHHELD: [(&str, &str); 14] = [
    ("ignored.txt", "POLICY_DENIED.IGNORED"),
    ("build/deep/out.txt", "POLICY_DENIED.IGNORED"),
    ("sub/nested.log", "POLICY_DENIED.IGNORED"),
    ("excluded.txt", "POLICY_DENIED.IGNORED"),
    ("other.txt", "POLICY_DENIED.IGNORED"),
    (".env", "POLICY_DENIED.SECRET"),
    ("terraform.tfvars", "POLICY_DENIED.SECRET"),
    ("certs/server.pem", "POLICY_DENIED.SECRET"),
    ("vault/x.txt", "POLICY_DENIED.DENIED"),
    (".git/config", "POLICY_DENIED.PROTECTED"),
    (".aptix/policy.toml", "POLICY_DENIED.PROTECTED"),
    ("bare/objects/x", "POLICY_DENIED.PROTECTED"),
    ("twin.txt", "POLICY_DENIED.HARD_LINKED"),
    ("notes.txt", "POLICY_DENIED.SECRET"),
];

/// How many of them are withheld for what they are, and not for their names.
const BY_CONTENT: usize = 3;

fn lay_out(scene: &Scene) {
    scene.put(".gitignore", "ignored.txt\n/build/\n");
    scene.put("sub/.gitignore", "*.log\n");
    scene.put(".git/info/exclude", "excluded.txt\n");
    scene.put(".ignore", "other.txt\n");
    for (path, _) in WITHHELD.iter().filter(|(path, _)| !path.starts_with(".aptix")) {
        scene.put(path, TEXT);
    }
    for name in ["HEAD", "refs/x"] {
        scene.put(&format!("bare/{name}"), TEXT);
    }
    scene.put("notes.txt", format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{TEXT}"));
    std::fs::hard_link(scene.at("twin.txt"), scene.place.path().join("outside.txt")).unwrap();
    scene.put_policy("deny = ['vault/']");
}

/// Nothing is read, described, listed or searched that a report would not show.
#[test]
fn what_is_withheld_is_refused_by_its_word_and_found_by_nobody() {
    let scene = Scene::set();
    lay_out(&scene);
    scene.put("open.txt", TEXT);
    for (path, expected) in WITHHELD {
        let failure = scene.read_one(path).unwrap_err();
        assert_eq!(words(&failure), expected, "{path}: {failure:?}");
        assert_eq!(scene.stat(path).unwrap_err(), failure, "{path}");
        let text = format!("{failure:?}");
        assert!(!text.contains("zebra") && !text.contains("config/aptix"), "{text}");
    }
    let policy = scene.policy();
    let page = list::list(&scene.workspace, &policy, &ListFiles::default(), &|| false).unwrap();
    let listed: Vec<_> = page.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(listed, [".gitignore", ".ignore", "open.txt", "sub/.gitignore"]);
    let call = SearchFiles { pattern: "zebra".to_owned(), ..SearchFiles::default() };
    let found = search::search(&scene.workspace, &policy, &call, &|| false).unwrap();
    let found: Vec<_> = found.matches.iter().map(|found| found.path.as_str()).collect();
    assert_eq!(found, ["open.txt"]);
}

/// What its path alone decides is answered the same whether the file exists or not.
#[test]
fn a_withheld_file_that_is_not_there_gets_the_same_answer() {
    let scene = Scene::set();
    lay_out(&scene);
    let by_path = WITHHELD.split_at(WITHHELD.len() - BY_CONTENT).0;
    let answers = || -> Vec<_> { by_path.iter().map(|(path, _)| scene.read_one(path).unwrap_err()).collect() };
    let before = answers();
    for (path, _) in by_path.iter().filter(|(path, _)| !path.starts_with('.')) {
        std::fs::remove_file(scene.at(path)).unwrap();
    }
    std::fs::remove_dir_all(scene.at("build")).unwrap();
    assert_eq!(answers(), before);
    let listed = |directory: &str| {
        let call = ListFiles { directory: Some(super::WorkspacePath::new(directory).unwrap()), ..ListFiles::default() };
        words(&list::list(&scene.workspace, &scene.policy(), &call, &|| false).unwrap_err())
    };
    assert_eq!(
        (listed("build").as_str(), listed("build/deep").as_str()),
        ("POLICY_DENIED.IGNORED", "POLICY_DENIED.IGNORED")
    );
    assert_eq!(
        (listed("vault").as_str(), listed(".git").as_str()),
        ("POLICY_DENIED.DENIED", "POLICY_DENIED.PROTECTED")
    );
    assert_eq!(listed("nowhere"), "NOT_FOUND");
    scene.put("open.txt", TEXT);
    assert_eq!(listed("open.txt"), "NOT_FOUND");
    let directory = Some(super::WorkspacePath::new("open.txt").unwrap());
    let call = SearchFiles { pattern: "zebra".to_owned(), directory, ..SearchFiles::default() };
    let found = search::search(&scene.workspace, &scene.policy(), &call, &|| false);
    assert_eq!(words(&found.unwrap_err()), "NOT_FOUND");
}

/// Whatever there is where nothing is shown, and however its name is written: a caller hears what it would hear of nothing.
#[test]
fn nothing_is_told_of_what_is_in_a_withheld_place() {
    let scene = Scene::set();
    lay_out(&scene);
    scene.put("build/Secret.txt", TEXT);
    scene.put("src/.gitignore", "Mine.txt\n");
    scene.put("src/Mine.txt", TEXT);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, scene.at("build/fifo"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    symlink("/etc", scene.at("build/etc")).unwrap();
    symlink("nowhere", scene.at("build/dangling")).unwrap();
    symlink("../build", scene.at("src/way")).unwrap();
    for (path, absent) in [
        ("build/deep", "build/none"),
        ("build/fifo", "build/none"),
        ("build/etc", "build/none"),
        ("build/etc/passwd", "build/none"),
        ("build/dangling", "build/none"),
        ("build/Secret.txt/x", "build/none/x"),
        ("build/SECRET.txt", "build/none"),
        ("vault/X.txt", "vault/none"),
        ("src/way/SECRET.txt", "src/way/none"),
        ("src/way/deep", "src/way/none"),
        ("src/way/fifo", "src/way/none"),
        ("src/way/etc", "src/way/none"),
        ("src/way/dangling", "src/way/none"),
        ("key:ws/build/deep", "key:ws/build/none"),
        (".git", ".git/none"),
        ("BUILD/x", "NONE/x"),
        ("src/mine.txt", "src/none.txt"),
        ("Ignored.txt", "None.txt"),
    ] {
        let (failure, expected) = (scene.read_one(path).unwrap_err(), scene.read_one(absent).unwrap_err());
        assert_eq!((words(&failure), failure.message), (words(&expected), expected.message), "{path}");
    }
}

/// What the person's policy says about reading, and rules that cannot be read.
#[test]
fn the_policy_decides_what_is_read() {
    let scene = Scene::set();
    lay_out(&scene);
    scene.put("src/x.txt", TEXT);
    let cases = [
        ("", "src/x.txt", ""),
        ("reads = 'none'", "src/x.txt", "POLICY_DENIED.READS"),
        ("reads = ['src/**']", "src/x.txt", ""),
        ("reads = ['docs/**']", "src/x.txt", "POLICY_DENIED.READS"),
        ("excerpts = 'after_approval'", "src/x.txt", "POLICY_DENIED.UNAPPROVED"),
        ("hard_links = 'allow'", "twin.txt", ""),
        ("secrets = { allow = ['*.tfvars', '/notes.txt'] }", "terraform.tfvars", ""),
        ("secrets = { allow = ['*.tfvars', '/notes.txt'] }", "notes.txt", ""),
        ("limits = { file_bytes = 5 }", "src/x.txt", "TOO_LARGE.FILE"),
    ];
    for (policy, path, expected) in cases {
        scene.put_policy(policy);
        let answer = scene.read_one(path).map_or_else(|failure| words(&failure), |_| String::new());
        assert_eq!(answer, expected, "{policy} and {path}");
        let call = ListFiles { page_size: 1000, ..ListFiles::default() };
        let page = list::list(&scene.workspace, &scene.policy(), &call, &|| false).unwrap();
        let is_listed = page.files.iter().any(|file| file.path == path);
        assert_eq!(is_listed, expected.is_empty() || expected == "TOO_LARGE.FILE", "{policy} and {path}");
    }
    scene.put_policy("");
    scene.put("src/.gitignore", "x\n".repeat(200_000));
    assert_eq!(words(&scene.read_one("src/x.txt").unwrap_err()), "POLICY_DENIED.UNKNOWN");
}

/// Whatever is at a path: the answer names it, and comes at once.
#[test]
fn what_is_no_file_to_read_is_refused_by_name_and_at_once() {
    let scene = Scene::set();
    let cases = odd_files::lay_out(&scene.at(""), &scene.place.path().join("elsewhere"));
    for (path, expected) in cases {
        let begun = Instant::now();
        let failure = scene.read_one(path).unwrap_err();
        assert_eq!(words(&failure), expected, "{path}: {failure:?}");
        assert!(failure.hint.is_some() && failure.path.is_some(), "{failure:?}");
        assert!(begun.elapsed() < Duration::from_secs(120), "{path} took {:?}", begun.elapsed());
    }
    let call = ListFiles { page_size: 100, ..ListFiles::default() };
    let page = list::list(&scene.workspace, &scene.policy(), &call, &|| false).unwrap();
    let listed: Vec<_> = page.files.into_iter().map(|file| file.path).collect();
    assert_eq!(listed, odd_files::LISTED);
    assert_eq!(scene.read_one("inside").unwrap().content.unwrap(), TEXT.as_bytes());
    assert_eq!(scene.read_one("key:ws/lone.txt").unwrap().info.path, "Lone.txt");
}
