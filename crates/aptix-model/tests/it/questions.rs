//! Questions about files on the wire: what protobuf lets through is still refused, and replies say what they are.

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::{Excerpt, Failure};
use aptix_model::lines::LineNumber;
use aptix_model::live::{
    Encoding, FileContent, FileInfo, FilePage, FilePart, FileSelector, ListFiles, Portion, SearchFiles, SearchMatch,
    SearchMatches, Terminators, TextFacts,
};
use aptix_model::path::{DocPath, WorkspacePath};
use aptix_model::question::{Question, Reply};
use aptix_model::reason::Reason;
use aptix_model::wire::v1;
use aptix_model::wire::v1::question::Ask;

fn by_path(path: &str) -> v1::FileSelector {
    v1::FileSelector { file: Some(v1::file_selector::File::Path(path.to_owned())) }
}

fn lines(start_line: i64, end_line: Option<i64>) -> v1::Range {
    v1::Range { range: Some(v1::range::Range::Lines(v1::LineSpan { start_line, end_line })) }
}

fn read(parts: Vec<v1::FilePart>) -> Ask {
    Ask::ReadFiles(v1::ReadFilesRequest { files: parts, ..v1::ReadFilesRequest::default() })
}

fn part(file: Option<v1::FileSelector>, range: Option<v1::Range>) -> v1::FilePart {
    v1::FilePart { file, range }
}

#[test]
fn a_question_is_read() {
    let key = v1::FileSelector { file: Some(v1::file_selector::File::DocPath("ws/a".to_owned())) };
    let bytes = v1::Range { range: Some(v1::range::Range::Bytes(v1::ByteSpan { offset: 7, length: 0 })) };
    let asked = read(vec![
        part(Some(by_path("src/A.rs")), None),
        part(Some(key.clone()), Some(lines(2, Some(2)))),
        part(Some(key), Some(bytes)),
    ]);
    let line = |number| LineNumber::new(number).unwrap();
    let path = FileSelector::Path(WorkspacePath::new("src/A.rs").unwrap());
    let key = FileSelector::DocPath(DocPath::new("ws/a").unwrap());
    let expected = Question::Read(vec![
        FilePart { file: path, portion: Portion::Whole },
        FilePart { file: key.clone(), portion: Portion::Lines(line(2), Some(line(2))) },
        FilePart { file: key, portion: Portion::Bytes { offset: 7, length: 0 } },
    ]);
    assert_eq!(Question::try_from(asked), Ok(expected));
    let list = v1::ListFilesRequest {
        page_size: 3,
        page_token: "t".to_owned(),
        directory: "src".to_owned(),
        ..Default::default()
    };
    let directory = Some(WorkspacePath::new("src").unwrap());
    let expected = ListFiles { directory: directory.clone(), page_size: 3, page_token: "t".to_owned() };
    assert_eq!(Question::try_from(Ask::ListFiles(list)), Ok(Question::List(expected)));
    let search = v1::SearchFilesRequest {
        pattern: "x".to_owned(),
        ignore_case: true,
        globs: vec!["*.rs".to_owned()],
        directory: "src".to_owned(),
        context_lines: 2,
        max_matches: 5,
        ..Default::default()
    };
    let globs = vec!["*.rs".to_owned()];
    let expected =
        SearchFiles { pattern: "x".to_owned(), ignore_case: true, globs, directory, context: 2, max_matches: 5 };
    assert_eq!(Question::try_from(Ask::SearchFiles(search)), Ok(Question::Search(expected)));
}

/// Everything that is wrong is named at once, by its field.
#[test]
fn what_is_wrong_with_a_question_is_named() {
    let stat = |files: Vec<v1::FileSelector>| Ask::StatFiles(v1::StatFilesRequest { files, ..Default::default() });
    let list = |directory: &str, page_size| {
        Ask::ListFiles(v1::ListFilesRequest { directory: directory.to_owned(), page_size, ..Default::default() })
    };
    let search = |pattern: &str, globs: usize| {
        let globs = vec!["*".to_owned(); globs];
        Ask::SearchFiles(v1::SearchFilesRequest { pattern: pattern.to_owned(), globs, ..Default::default() })
    };
    let file = || Some(by_path("a"));
    let cases: [(Ask, &[&str]); 12] = [
        (read(Vec::new()), &["INVALID_REQUEST files"]),
        (read(vec![part(file(), None); 101]), &["TOO_LARGE files"]),
        (
            read(vec![part(None, None), part(file(), None), part(Some(by_path("../a")), None)]),
            &["INVALID_REQUEST files[0].file", "INVALID_PATH files[2].file.path"],
        ),
        (read(vec![part(file(), Some(v1::Range { range: None }))]), &["INVALID_REQUEST files[0].range"]),
        (read(vec![part(file(), Some(lines(0, None)))]), &["LINE_RANGE files[0].range.lines"]),
        (read(vec![part(file(), Some(lines(2, Some(1))))]), &["LINE_RANGE files[0].range.lines"]),
        (read(vec![part(file(), Some(lines(1, Some(1 << 40))))]), &["LINE_RANGE files[0].range.lines"]),
        (
            stat(vec![
                by_path("/etc/passwd"),
                v1::FileSelector { file: Some(v1::file_selector::File::DocPath("ws/A".to_owned())) },
            ]),
            &["INVALID_PATH files[0].path", "INVALID_PATH files[1].docPath"],
        ),
        (stat(vec![by_path("a"); 1001]), &["TOO_LARGE files"]),
        (list("a//b", 0), &["INVALID_PATH directory"]),
        (list("", -1), &["INVALID_REQUEST pageSize"]),
        (search("", 101), &["INVALID_REQUEST pattern", "TOO_LARGE globs"]),
    ];
    for (ask, expected) in cases {
        let failures = Question::try_from(ask).unwrap_err();
        let named =
            failures.iter().map(|failure| format!("{} {}", failure.reason, failure.field.as_deref().unwrap_or("-")));
        assert_eq!(named.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_reply_says_what_files_are() {
    let facts = |encoding| TextFacts {
        sha256: Sha256Digest::from_bytes([7; 32]),
        line_count: 3,
        terminators: Terminators::Crlf,
        encoding,
    };
    let info = |encoding: Option<Encoding>| FileInfo {
        path: "A".to_owned(),
        doc_path: "ws/a".to_owned(),
        size_bytes: 9,
        is_executable: true,
        is_unsaved: encoding.is_some(),
        text: encoding.map(facts),
    };
    let content =
        FileContent { info: info(Some(Encoding::Utf8Marked)), content: Some(b"x".to_vec()), offset: 4, first_line: 2 };
    let missing = Failure::new(Reason::NotFound, "none");
    let v1::answer::Answer::ReadFiles(read) = Reply::Read(vec![Ok(content), Err(missing)]).into() else { panic!() };
    let Some(v1::file_result::Result::File(file)) = &read.results[0].result else { panic!("{read:?}") };
    let state = file.file.as_ref().unwrap();
    assert_eq!((file.content(), file.offset, file.first_line, state.line_count), (b"x".as_slice(), 4, 2, Some(3)));
    assert_eq!((state.terminators(), state.encoding()), (v1::Terminators::Crlf, v1::Encoding::Utf8Bom));
    assert_eq!((state.source(), state.is_executable, state.revision), (v1::Source::Active, Some(true), None));
    assert_eq!((state.sha256.as_str(), state.is_unsaved), ("07".repeat(32).as_str(), true));
    assert!(
        matches!(&read.results[1].result, Some(v1::file_result::Result::Failure(failure)) if failure.reason == "NOT_FOUND")
    );

    let v1::answer::Answer::StatFiles(stat) = Reply::Stat(vec![Ok(info(Some(Encoding::Utf16)))]).into() else {
        panic!()
    };
    let Some(v1::file_result::Result::File(file)) = &stat.results[0].result else { panic!("{stat:?}") };
    let state = file.file.as_ref().unwrap();
    assert_eq!((file.content.as_ref(), state.line_count, state.encoding()), (None, None, v1::Encoding::Binary));
    assert_eq!(state.terminators(), v1::Terminators::Unspecified);

    let page = FilePage { files: vec![info(None)], next_page_token: "t".to_owned(), ..FilePage::default() };
    let v1::answer::Answer::ListFiles(list) = Reply::List(page).into() else { panic!() };
    assert_eq!((list.files[0].sha256.as_str(), list.files[0].size_bytes, list.next_page_token.as_str()), ("", 9, "t"));
    let excerpt = Excerpt { start_line: 1, end_line: 2, text: "a\nb".to_owned() };
    let found = SearchMatch { path: "A".to_owned(), doc_path: "ws/a".to_owned(), line: 2, excerpt, is_unsaved: true };
    let found = SearchMatches { matches: vec![found], has_more: true, ..SearchMatches::default() };
    let v1::answer::Answer::SearchFiles(found) = Reply::Search(found).into() else { panic!() };
    assert!(found.matches[0].is_unsaved);
    assert_eq!(
        (found.has_more, found.matches[0].line, found.matches[0].excerpt.as_ref().unwrap().end_line),
        (true, 2, 2)
    );
}
