//! Lines that match, with those around them.

use std::cell::Cell;

use aptix_client::live::search;
use aptix_model::failure::Failure;
use aptix_model::live::{SearchFiles, SearchMatches};

use super::{Scene, WorkspacePath, words};

fn call(pattern: &str) -> SearchFiles {
    SearchFiles { pattern: pattern.to_owned(), ..SearchFiles::default() }
}

fn search(scene: &Scene, call: &SearchFiles) -> Result<SearchMatches, Failure> {
    search::search(&scene.workspace, &scene.policy(), call, &|| false)
}

/// What was found, a line for each match.
fn shown(scene: &Scene, call: &SearchFiles) -> Vec<String> {
    let found = search(scene, call).unwrap();
    let mut shown: Vec<_> = found
        .matches
        .iter()
        .map(|found| {
            let excerpt = &found.excerpt;
            let text = excerpt.text.replace('\n', "|");
            format!("{}:{} {}-{} {text}", found.path, found.line, excerpt.start_line, excerpt.end_line)
        })
        .collect();
    shown.extend(found.has_more.then(|| "more".to_owned()));
    shown
}

#[test]
fn lines_are_found_with_those_around_them() {
    let scene = Scene::set();
    scene.put("a.rs", "a\nx 1\nb\nx 2\nc\nd\ne\nX 3\n");
    scene.put("sub/b.txt", "\u{feff}x\r\nlast");
    scene.put("sub/binary", "x\0");
    let all = call("^x");
    assert_eq!(shown(&scene, &all), ["a.rs:2 2-2 x 1", "a.rs:4 4-4 x 2", "sub/b.txt:1 1-1 x"]);
    let near = SearchFiles { context: 1, ..all.clone() };
    assert_eq!(
        shown(&scene, &near),
        ["a.rs:2 1-3 a|x 1|b", "a.rs:4 3-5 b|x 2|c", "sub/b.txt:1 1-2 x|last"],
        "each match has all the lines around it"
    );
    let near = SearchFiles { context: 3, max_matches: 1, ..all.clone() };
    assert_eq!(shown(&scene, &near), ["a.rs:2 1-5 a|x 1|b|x 2|c", "more"]);
    let near = SearchFiles { context: 900, max_matches: 2, ..all.clone() };
    assert_eq!(shown(&scene, &near), ["a.rs:2 1-8 a|x 1|b|x 2|c|d|e|X 3", "a.rs:4 1-8 a|x 1|b|x 2|c|d|e|X 3", "more"]);
    let any_case = SearchFiles { ignore_case: true, max_matches: 3, ..all.clone() };
    assert_eq!(shown(&scene, &any_case), ["a.rs:2 2-2 x 1", "a.rs:4 4-4 x 2", "a.rs:8 8-8 X 3", "more"]);
    let exactly = SearchFiles { max_matches: 3, ..all.clone() };
    assert_eq!(shown(&scene, &exactly).len(), 3, "there are no more");
    let below = SearchFiles { directory: Some(WorkspacePath::new("sub").unwrap()), ..all };
    assert_eq!(shown(&scene, &below), ["sub/b.txt:1 1-1 x"]);
}

#[test]
fn globs_select_files_as_in_ignore_files() {
    let scene = Scene::set();
    for path in ["a.rs", "a.ts", "src/b.rs", "src/gen/c.rs", "docs/d.md"] {
        scene.put(path, "x\n");
    }
    let cases: [(&[&str], &[&str]); 9] = [
        (&[], &["a.rs", "a.ts", "docs/d.md", "src/b.rs", "src/gen/c.rs"]),
        (&["*.rs"], &["a.rs", "src/b.rs", "src/gen/c.rs"]),
        (&["/*.rs", "*.md"], &["a.rs", "docs/d.md"]),
        (&["src/"], &["src/b.rs", "src/gen/c.rs"]),
        (&["*.rs", "!gen/"], &["a.rs", "src/b.rs"]),
        (&["!*.rs"], &["a.ts", "docs/d.md"]),
        (&["*.none"], &[]),
        (&["[ab].rs"], &["a.rs", "src/b.rs"]),
        (&["[!a].rs"], &["src/b.rs", "src/gen/c.rs"]),
    ];
    for (globs, expected) in cases {
        let globs: Vec<_> = globs.iter().map(|&glob| glob.to_owned()).collect();
        let found = search(&scene, &SearchFiles { globs: globs.clone(), ..call("x") }).unwrap();
        let paths: Vec<_> = found.matches.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(paths, expected, "{globs:?}");
    }
}

/// What cannot be searched for is refused by name, and so is what would take too long.
#[test]
fn a_search_that_cannot_be_made_is_refused_by_name() {
    let scene = Scene::set();
    scene.put("long.txt", "ab".repeat(200_000));
    let glob = |glob: &str, count: usize| SearchFiles { globs: vec![glob.to_owned(); count], ..call("x") };
    let below = |path: &str| SearchFiles { directory: Some(WorkspacePath::new(path).unwrap()), ..call("x") };
    let cases = [
        (call("("), "INVALID_REQUEST.REGEX"),
        (call("a\\nb"), "INVALID_REQUEST.REGEX"),
        (call(&"x".repeat(2_049)), "TOO_LARGE"),
        (call("(a{1000}){1000}"), "MATCH_BUDGET_EXCEEDED"),
        (call("a[ab]{9000}c"), "MATCH_BUDGET_EXCEEDED"),
        (glob("[b-a]", 1), "INVALID_REQUEST"),
        (glob("[a", 1), "INVALID_REQUEST"),
        (glob("", 1), "INVALID_REQUEST"),
        (glob("# none", 1), "INVALID_REQUEST"),
        (glob("*", 101), "TOO_LARGE"),
        (glob(&"x".repeat(2_049), 1), "TOO_LARGE"),
        (below("nowhere"), "NOT_FOUND"),
        (below(".git"), "POLICY_DENIED.PROTECTED"),
    ];
    for (call, expected) in cases {
        let answer = search(&scene, &call);
        assert_eq!(answer.map_err(|failure| words(&failure)), Err(expected.to_owned()), "{call:?}");
    }
}

/// However much matches, an answer is bounded, and says that there is more.
#[test]
fn an_answer_is_bounded() {
    let scene = Scene::set();
    scene.put("wide.txt", format!("{}\n", "x".repeat(100_000)).repeat(100));
    scene.put("tall.txt", "x\n".repeat(5_000));
    let call = SearchFiles { max_matches: usize::MAX, context: 20, ..call("x") };
    let found = search(&scene, &call).unwrap();
    assert!(found.has_more && found.matches.len() == 1000, "{}", found.matches.len());
    let call = SearchFiles { globs: vec!["wide.txt".to_owned()], ..call };
    let found = search(&scene, &call).unwrap();
    let bytes: usize = found.matches.iter().map(|found| found.excerpt.text.len()).sum();
    assert!(found.has_more && bytes <= 1 << 20, "{bytes}");
    assert!(found.matches.iter().all(|found| found.excerpt.text.lines().all(|line| line.len() == 400)));
}

#[test]
fn a_search_ends_with_its_caller() {
    let scene = Scene::set();
    (0..50).for_each(|number| scene.put(&format!("{number}.txt"), "y\n"));
    for questions in [0_u32, 1, 20] {
        let left = Cell::new(questions);
        let is_over = || left.replace(left.get().saturating_sub(1)) == 0;
        let failure = search::search(&scene.workspace, &scene.policy(), &call("x"), &is_over).unwrap_err();
        assert_eq!(words(&failure), "DEADLINE_EXCEEDED", "{questions}");
    }
}
