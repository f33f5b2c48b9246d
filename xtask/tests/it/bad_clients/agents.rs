//! Agents that hold what others need: they begin large answers and never end them, or do so over and over.

use aptix_model::wire::v1;
use tokio::time::timeout;
use tokio_util::bytes::Bytes;
use tonic::Code;

use super::raw::{Raw, framed};
use super::{Quiet, SOON, WINDOW, assert_waited_little, hello, machine};

/// The beginning of an answer of 4 MB.
fn begun_answer() -> Bytes {
    let file = v1::FileContent { content: Some(vec![7; 4_000_000].into()), ..v1::FileContent::default() };
    let results = vec![v1::FileResult { result: Some(v1::file_result::Result::File(file)) }];
    let answer = Some(v1::answer::Answer::ReadFiles(v1::ReadFilesResponse { results }));
    let answer = v1::Answer { question_id: 1, answer };
    let whole = framed(&v1::ServeRequest { message: Some(v1::serve_request::Message::Answer(answer)) });
    whole.slice(..whole.len() - 1)
}

/// Each is ended by name, and all together take no more memory than the incomplete messages of one caller may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_never_end_an_answer_hold_up_nobody_and_are_ended() {
    let (machine, server) = machine("request_idle_seconds = 3", 4096);
    let mut quiet = Quiet::connect(&server).await;
    let begun = begun_answer();
    let mut agents = Vec::new();
    for connection in 0..3 {
        let mut agent = Raw::connect(&server.address, WINDOW).await.unwrap();
        for number in 0..20 {
            let hello = hello(&format!("w{connection}-{number}"));
            timeout(SOON, agent.begin_and_leave("AgentService/Serve", &hello)).await.unwrap().unwrap();
            let (_, sender) = agent.open.last_mut().unwrap();
            sender.send_data(begun.clone(), false).unwrap();
        }
        agents.push(agent);
    }
    quiet.rounds(3).await;
    let expected = [Code::DeadlineExceeded, Code::ResourceExhausted];
    for stream in agents.iter_mut().flat_map(|agent| &mut agent.unread) {
        while let Some(data) = timeout(SOON, stream.data()).await.expect("the call is ended") {
            let length = data.unwrap().len();
            stream.flow_control().release_capacity(length).unwrap();
        }
        let trailers = stream.trailers().await.unwrap().unwrap();
        let code = trailers["grpc-status"].to_str().unwrap().parse::<i32>().unwrap();
        assert!(expected.map(|code| code as i32).contains(&code), "{trailers:?}");
    }
    assert!(server.peak_memory() < 256 << 20, "{} bytes", server.peak_memory());
    assert_waited_little(&machine, 3);
}
