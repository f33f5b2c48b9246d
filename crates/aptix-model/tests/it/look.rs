//! The tools that only look: their calls.

use aptix_model::failure::Failure;
use aptix_model::path::WorkspacePath;
use aptix_model::tools::catalogue::find;
use aptix_model::tools::look::{Case, Look, ReadFile, Search};
use aptix_model::tools::roots::Roots;
use aptix_model::tools::tool::Call;

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::new(text).unwrap()
}

fn parse(tool: &str, arguments: &str) -> Result<Call, Failure> {
    find(tool).unwrap().parse(arguments, &Roots::default()).map_err(|mut document| document.part.failures.remove(0))
}

fn read_file(arguments: &str) -> Result<ReadFile, Failure> {
    parse("read_file", arguments).map(|call| match call {
        Call::Look(Look::Read(call)) => call,
        other => panic!("{other:?}"),
    })
}

fn search(arguments: &str) -> Result<Search, Failure> {
    parse("ripgrep_files", arguments).map(|call| match call {
        Call::Look(Look::FindFiles(call)) => call,
        other => panic!("{other:?}"),
    })
}

/// WS-MOD-4.2.11: an empty range is none, and no limit is the usual one.
#[test]
fn fill_in_values_of_read_file_are_as_if_left_out() {
    let whole = ReadFile { path: path("a/b"), start_line: 1, end_line: None, max_lines: 500 };
    for (arguments, expected) in [
        (r#"{"path":"a/b"}"#, whole.clone()),
        (r#"{"path":"a/b","range":"","max_lines":0}"#, whole.clone()),
        (r#"{"path":"./a\\b","range":null,"max_lines":null}"#, whole.clone()),
        (r#"{"path":"a/b","range":"~"}"#, whole.clone()),
        (r#"{"path":"a/b","range":"3"}"#, ReadFile { start_line: 3, end_line: Some(3), ..whole.clone() }),
        (
            r#"{"path":"a/b","range":"3~7","max_lines":2}"#,
            ReadFile { start_line: 3, end_line: Some(7), max_lines: 2, ..whole.clone() },
        ),
        (r#"{"path":"a/b","range":"501~"}"#, ReadFile { start_line: 501, ..whole.clone() }),
        (r#"{"path":"a/b","max_lines":4294967295}"#, ReadFile { max_lines: 5_000, ..whole.clone() }),
    ] {
        assert_eq!(read_file(arguments), Ok(expected), "{arguments}");
    }
}

/// WS-MOD-4.2.13: empty or zero arguments mean the whole root, smart case and the usual limits.
#[test]
fn fill_in_values_of_ripgrep_are_as_if_left_out() {
    let usual = Search {
        pattern: Some("x".to_owned()),
        path: None,
        case: Case::Smart,
        glob: None,
        max_files: 100,
        max_results: 200,
        context: 0,
    };
    for (arguments, expected) in [
        (r#"{"pattern":"x"}"#, usual.clone()),
        (r#"{"pattern":"x","path":"","case":"","glob":"","max_files":0,"max_results":0,"context":0}"#, usual.clone()),
        (r#"{"pattern":"x","path":".","case":"smart"}"#, usual.clone()),
        (r#"{"pattern":"x","path":"./"}"#, usual.clone()),
        (r#"{"pattern":"x","path":"src/"}"#, Search { path: Some(path("src")), ..usual.clone() }),
        (r#"{"pattern":""}"#, Search { pattern: None, ..usual.clone() }),
        (r#"{}"#, Search { pattern: None, ..usual.clone() }),
        (
            r#"{"pattern":"x","case":"sensitive","glob":"*.rs","max_files":9999,"max_results":3,"context":99}"#,
            Search {
                case: Case::Sensitive,
                glob: Some("*.rs".to_owned()),
                max_files: 2_000,
                max_results: 3,
                context: 20,
                ..usual.clone()
            },
        ),
    ] {
        assert_eq!(search(arguments), Ok(expected), "{arguments}");
    }
}

#[test]
fn what_does_not_have_the_shape_is_refused_by_name() {
    let refused = |outcome: Result<(), Failure>| outcome.unwrap_err().to_string();
    for (arguments, expected) in [
        (r#"{}"#, "INVALID_REQUEST"),
        (r#"{"path":"a","path":"b"}"#, "INVALID_REQUEST (DUPLICATE_KEY)"),
        (r#"{"path":"a","lines":3}"#, "INVALID_REQUEST (UNKNOWN_FIELD)"),
        (r#"{"path":"/etc/passwd"}"#, "INVALID_PATH (ABSOLUTE)"),
        (r#"{"path":"../x"}"#, "INVALID_PATH (TRAVERSAL)"),
        (r#"{"path":""}"#, "INVALID_PATH (EMPTY)"),
        (r#"{"path":"a","range":"2-3"}"#, "INVALID_REQUEST (NUMBER)"),
        (r#"{"path":"a","range":"0~3"}"#, "LINE_RANGE (NUMBER)"),
        (r#"{"path":"a","range":"5~3"}"#, "LINE_RANGE (INVERTED)"),
        (r#"{"path":"a","max_lines":-1}"#, "INVALID_REQUEST"),
    ] {
        let message = refused(read_file(arguments).map(drop));
        assert!(message.starts_with(expected), "{arguments}: {message}");
    }
    for (arguments, expected) in [
        (r#"{"pattern":"x","case":"loud"}"#, "INVALID_REQUEST (UNKNOWN_ENUM)"),
        (r#"{"pattern":"x","path":"../.."}"#, "INVALID_PATH (TRAVERSAL)"),
        (r#"{"query":"x"}"#, "INVALID_REQUEST (UNKNOWN_FIELD)"),
    ] {
        let message = refused(search(arguments).map(drop));
        assert!(message.starts_with(expected), "{arguments}: {message}");
    }
}
