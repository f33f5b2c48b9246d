//! Answers of an agent that do not fit the question: none is passed on.

use aptix_model::wire::v1;
use aptix_model::wire::v1::answer::Answer;
use tonic::Code;

use crate::live_files::{Disk, Twist, bytes, lines, read, selector};
use crate::server::{Server, assert_refused, refusal};

/// Twists each file of an answer.
fn of(twist: fn(&mut v1::FileContent)) -> Twist {
    Box::new(move |answer| {
        let results = match answer {
            Answer::ReadFiles(answer) => &mut answer.results,
            Answer::StatFiles(answer) => &mut answer.results,
            _ => return,
        };
        for result in results {
            if let Some(v1::file_result::Result::File(file)) = &mut result.result {
                twist(file);
            }
        }
    })
}

/// Twists what the first file is said to be.
fn state(twist: fn(&mut v1::FileState)) -> Twist {
    Box::new(move |answer| {
        let Answer::ReadFiles(answer) = answer else { return };
        let Some(v1::file_result::Result::File(file)) = &mut answer.results[0].result else { return };
        file.file.iter_mut().for_each(twist);
    })
}

/// Answers to a read of one whole file, each wrong in another way.
fn twists() -> Vec<Twist> {
    vec![
        Box::new(|answer| *answer = Answer::ReadFiles(v1::ReadFilesResponse::default())),
        Box::new(|answer| {
            *answer = Answer::ReadFiles(v1::ReadFilesResponse { results: vec![v1::FileResult::default()] })
        }),
        of(|file| file.content = Some(b"aaa\nbbb\nccc\nDDD\n".as_slice().into())),
        of(|file| file.content = None),
        of(|file| file.content = Some(vec![b'x'; 2 << 20].into())),
        of(|file| file.offset = 1),
        of(|file| file.first_line = 0),
        of(|file| file.file = None),
        state(|state| state.path = "src/B.txt".to_owned()),
        state(|state| state.path = "../A.txt".to_owned()),
        state(|state| state.doc_path = "app/other".to_owned()),
        state(|state| state.doc_path = "other/src/b.txt".to_owned()),
        state(|state| state.sha256 = "0".repeat(64)),
        state(|state| state.sha256 = "no digest".to_owned()),
        state(|state| state.size_bytes = 15),
        state(|state| state.line_count = Some(5)),
        state(|state| state.line_count = None),
        state(|state| state.encoding = v1::Encoding::Utf8Bom.into()),
        state(|state| state.terminators = 77),
        state(|state| state.source = v1::Source::Cloud.into()),
        state(|state| state.batch_id = "018f6d2e-7c1a-7b3e-9d55-0123456789ab".to_owned()),
        Box::new(|answer| {
            let failure = v1::Failure { message: "x".repeat(1 << 20), ..v1::Failure::default() };
            let result = Some(v1::file_result::Result::Failure(failure));
            *answer = Answer::ReadFiles(v1::ReadFilesResponse { results: vec![v1::FileResult { result }] });
        }),
    ]
}

/// What does not fit the question is passed on to nobody, whatever it is, and the next question is asked all the same.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_not_passed_on() {
    let server = Server::start();
    let (mut client, mut agent) = (server.connect().await, server.connect().await);
    let disk = Disk::default();
    disk.write("src/A.txt", b"aaa\nbbb\nccc\nddd\n");
    let _serving = disk.serve(&mut agent).await;
    for (number, twist) in twists().into_iter().enumerate() {
        *disk.twist.lock().unwrap() = Some(twist);
        let answer = read(&mut client, "src/A.txt", None, v1::Source::Active).await;
        let status = answer.expect_err(&format!("twist {number} is refused"));
        assert_eq!(
            refusal(&status),
            (Code::Internal, "INTERNAL".into(), "WRONG_ANSWER".into()),
            "{number}: {status:?}"
        );
    }
    *disk.twist.lock().unwrap() = Some(of(|file| file.content = Some(b"x".as_slice().into())));
    let files = selector("src/A.txt").into_iter().collect();
    let stat = v1::StatFilesRequest { workspace_id: "w".to_owned(), files, ..v1::StatFilesRequest::default() };
    assert_refused(client.files.stat_files(stat).await, Code::Internal, "INTERNAL", "WRONG_ANSWER");
    *disk.twist.lock().unwrap() = None;
    assert_eq!(read(&mut client, "src/A.txt", None, v1::Source::Active).await.unwrap().content.unwrap().len(), 16);
}

/// A part has no digest of its own; it still is no longer than asked, and begins where it should.
#[tokio::test]
async fn a_part_that_was_not_asked_for_is_not_passed_on() {
    let server = Server::start();
    let (mut client, mut agent) = (server.connect().await, server.connect().await);
    let disk = Disk::default();
    disk.write("src/A.txt", b"aaa\nbbb\nccc\nddd\n");
    let _serving = disk.serve(&mut agent).await;
    for range in [lines(2, 3), bytes(4, 8)] {
        for twist in [
            of(|file| file.content = Some(b"bbb\nccc\nd\n".as_slice().into())),
            of(|file| file.offset = 15),
            of(|file| (file.offset, file.first_line) = (5, 3)),
        ] {
            *disk.twist.lock().unwrap() = Some(twist);
            let answer = read(&mut client, "src/A.txt", range, v1::Source::Active).await;
            assert_refused(answer, Code::Internal, "INTERNAL", "WRONG_ANSWER");
        }
    }
}

/// Lists and searches that do not fit are refused as well.
#[tokio::test]
async fn a_list_or_a_search_that_does_not_fit_is_not_passed_on() {
    let server = Server::start();
    let (mut client, mut agent) = (server.connect().await, server.connect().await);
    let disk = Disk::default();
    disk.write("src/A.txt", b"one\n");
    disk.write("src/B.txt", b"two\n");
    let _serving = disk.serve(&mut agent).await;
    let list = v1::ListFilesRequest { workspace_id: "w".to_owned(), directory: "src".to_owned(), ..Default::default() };
    client.files.list_files(list.clone()).await.unwrap();
    let few = v1::ListFilesRequest { page_size: 1, ..list.clone() };
    assert_refused(client.files.list_files(few).await, Code::Internal, "INTERNAL", "WRONG_ANSWER");
    let elsewhere = v1::ListFilesRequest { directory: "lib".to_owned(), ..list.clone() };
    assert_refused(client.files.list_files(elsewhere).await, Code::Internal, "INTERNAL", "WRONG_ANSWER");
    *disk.twist.lock().unwrap() = Some(Box::new(|answer| {
        if let Answer::ListFiles(page) = answer {
            page.files[0].sha256 = "0".repeat(64);
        }
    }));
    assert_refused(client.files.list_files(list.clone()).await, Code::Internal, "INTERNAL", "WRONG_ANSWER");
    // Of a root that the agent did not name when it connected.
    *disk.twist.lock().unwrap() = Some(Box::new(|answer| {
        if let Answer::ListFiles(page) = answer {
            page.files[0].doc_path = page.files[0].doc_path.replace("app/", "other/");
        }
    }));
    assert_refused(client.files.list_files(list.clone()).await, Code::Internal, "INTERNAL", "WRONG_ANSWER");
    *disk.twist.lock().unwrap() = Some(Box::new(|answer| {
        if let Answer::SearchFiles(found) = answer {
            found.matches[0].line = 3;
        }
    }));
    let search = v1::SearchFilesRequest { workspace_id: "w".to_owned(), pattern: "o".to_owned(), ..Default::default() };
    assert_refused(client.files.search_files(search.clone()).await, Code::Internal, "INTERNAL", "WRONG_ANSWER");
    for (paths, fits) in
        [(["src", "src/C"].to_vec(), true), (vec!["lib/x"], false), (vec!["/x"], false), (vec!["src/x"; 9], false)]
    {
        let paths: Vec<_> = paths.into_iter().map(str::to_owned).collect();
        *disk.twist.lock().unwrap() = Some(Box::new(move |answer| {
            let skipped = Some(v1::Skipped { unreadable: 1, paths: paths.clone(), ..Default::default() });
            match answer {
                Answer::ListFiles(page) => page.skipped = skipped,
                Answer::SearchFiles(found) => found.skipped = skipped,
                _ => {}
            }
        }));
        let search = v1::SearchFilesRequest { directory: "src".to_owned(), context_lines: 1, ..search.clone() };
        let listed = client.files.list_files(list.clone()).await.map(|page| page.into_inner().skipped);
        let found = client.files.search_files(search).await.map(|found| found.into_inner().skipped);
        for skipped in [listed, found] {
            match skipped {
                Ok(skipped) => assert!(fits && skipped.is_some()),
                refused => assert!(!fits, "{refused:?}"),
            }
        }
    }
}
