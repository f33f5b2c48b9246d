//! Answers of several parts, each of which may be large: together they fit into one message.

use std::collections::BTreeSet;

use aptix_model::wire::v1;
use aptix_model::wire::v1::answer::Answer;

use crate::live_files::Disk;
use crate::server::{Server, create_text, failed, hello, submit};

/// Agents name roots as long and as many as they may: the list of workspaces has as many on a page as fit, and all in the end.
#[tokio::test]
async fn a_page_of_workspaces_fits_into_a_message() {
    let server = Server::start();
    let mut client = server.connect().await;
    let roots: Vec<_> = (0..64).map(|root| format!("{root:0>255}")).collect();
    let names: BTreeSet<_> = (0..300).map(|number| format!("w{number}")).collect();
    for name in &names {
        drop(client.serve(v1::Hello { roots: roots.clone(), ..hello(name, "agent") }).await.unwrap());
    }
    let (mut found, mut page_token, mut pages) = (BTreeSet::new(), String::new(), 0);
    loop {
        let request = v1::ListWorkspacesRequest { page_size: 1000, page_token };
        let page = client.workspaces.list_workspaces(request).await.unwrap().into_inner();
        found.extend(page.workspaces.into_iter().map(|workspace| workspace.workspace_id));
        (page_token, pages) = (page.next_page_token, pages + 1);
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!((found, pages), (names, 2));
}

/// A preview comes with its batch, however large both are: what the caller has already is left out first.
#[tokio::test]
async fn a_preview_fits_into_a_message_beside_its_batch() {
    let server = Server::start();
    let mut client = server.connect().await;
    let disk = Disk::default();
    let agent = disk.serve(&mut client).await;
    *disk.twist.lock().unwrap() = Some(Box::new(|answer| {
        if let Answer::Preview(report) = answer {
            let failure = failed("TEXT_NOT_FOUND").failures.remove(0);
            let failure = v1::Failure { message: "x".repeat(60_000), ..failure };
            *report = v1::Report { failures: vec![failure; 30], ..failed("TEXT_NOT_FOUND") };
        }
    }));
    let files = (0..3).map(|file| create_text(&format!("{file}.txt"), &"x".repeat(1 << 20))).collect();
    let request = v1::SubmitBatchRequest { validate_only: true, ..submit("w", "r1", files) };
    let answer = client.batches.submit_batch(request).await.unwrap().into_inner();
    assert!(answer.batch.unwrap().content_omitted);
    assert_eq!(answer.preview.unwrap().failures.len(), 30);
    agent.abort();
}
