//! What the agent does with the server's questions: when it answers them, and when no longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aptix_client::agent::Approve;
use aptix_client::connection::question::{Answering, Wanted};
use aptix_client::policy::files::PolicyFiles;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::presence::QuestionKind;
use aptix_model::question::Question;
use aptix_model::wire::question::Answer;
use aptix_model::wire::v1;
use aptix_model::wire::v1::question::Ask as Asked;
use aptix_model::wire::v1::serve_response::Message;

use super::scene::{Scene, batch, blob, create, eventually};

/// Answers to be read at once, with 2 MiB for the file "large"; is looked at, and previews, for as long as that is wanted;
/// lists too much; and cannot be searched.
#[derive(Debug, Default)]
struct Scripted {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Answering for Scripted {
    fn kinds(&self) -> &[QuestionKind] {
        &[QuestionKind::Read, QuestionKind::Stat, QuestionKind::List, QuestionKind::Search, QuestionKind::Preview]
    }

    fn answer(&self, local: &Workspace, _: &PolicyFiles, question: &Question, wanted: &Wanted) -> Answer {
        assert_eq!(local.roots().len(), 1);
        match question {
            Question::Stat(_)
            | Question::Preview(_)
            | Question::Prepare(..)
            | Question::Tool(_)
            | Question::Paths(_) => {
                self.begun.fetch_add(1, Ordering::SeqCst);
                while !wanted.is_over() {
                    std::thread::park_timeout(Duration::from_millis(1));
                }
                self.ended.fetch_add(1, Ordering::SeqCst);
                Answer(v1::answer::Answer::StatFiles(v1::StatFilesResponse::default()))
            }
            Question::List(_) => {
                let next_page_token = "x".repeat(5 << 20);
                let page = v1::ListFilesResponse { next_page_token, ..v1::ListFilesResponse::default() };
                Answer(v1::answer::Answer::ListFiles(page))
            }
            Question::Search(_) => panic!("on purpose"),
            Question::Read(files) => {
                let mut answer = v1::ReadFilesResponse::default();
                if format!("{files:?}").contains("large") {
                    self.begun.fetch_add(1, Ordering::SeqCst);
                    let file = v1::FileContent { content: Some(vec![0; 2 << 20].into()), ..v1::FileContent::default() };
                    answer.results.push(v1::FileResult { result: Some(v1::file_result::Result::File(file)) });
                }
                Answer(v1::answer::Answer::ReadFiles(answer))
            }
        }
    }
}

const HOUR: Duration = Duration::from_secs(3600);

fn by_path(path: &str) -> v1::FileSelector {
    v1::FileSelector { file: Some(v1::file_selector::File::Path(path.to_owned())) }
}

fn read_file(path: &str) -> Asked {
    let files = vec![v1::FilePart { file: Some(by_path(path)), range: None }];
    Asked::ReadFiles(v1::ReadFilesRequest { files, ..v1::ReadFilesRequest::default() })
}

fn read() -> Asked {
    read_file("small")
}

fn stat() -> Asked {
    Asked::StatFiles(v1::StatFilesRequest { files: vec![by_path("small")], ..v1::StatFilesRequest::default() })
}

/// A scene whose agent answers, once it is connected.
async fn scene() -> (Scene, Arc<Scripted>) {
    let mut scene = Scene::set(Approve::Auto);
    scene.stop().await;
    let scripted = Arc::new(Scripted::default());
    scene.answering = Arc::clone(&scripted) as Arc<dyn Answering>;
    let before = scene.server.script.lock().unwrap().hellos.len();
    scene.start(Approve::Auto);
    eventually("it connects", || scene.server.script.lock().unwrap().hellos.len() > before).await;
    // Once a batch was reported it has read its connection.
    scene.server.send(batch(99, "x.txt", None));
    scene.report(1, 99).await;
    (scene, scripted)
}

fn ask(scene: &Scene, question_id: u64, time: Duration, ask: impl Into<Option<Asked>>) {
    let time_left = prost_types::Duration::try_from(time).ok();
    scene.server.ask(Message::Question(v1::Question { question_id, time_left, ask: ask.into() }));
}

/// The answer to a question, once it is there: the reason of a failure, or nothing.
async fn answered(scene: &Scene, number: u64) -> Option<String> {
    let find = || scene.server.script.lock().unwrap().answers.iter().find(|a| a.question_id == number).cloned();
    eventually(&format!("question {number} is answered"), || find().is_some()).await;
    match find().unwrap().answer.unwrap() {
        v1::answer::Answer::Failure(failure) => Some(failure.reason),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_are_answered_by_kind_and_whatever_fails_says_why() {
    let (scene, _) = scene().await;
    let hello = scene.server.script.lock().unwrap().hellos.last().cloned().unwrap();
    assert_eq!(hello.features, ["read", "stat", "list", "search", "preview"]);
    assert_eq!((hello.roots.as_slice(), hello.approval_mode()), (&["ws".to_owned()][..], v1::ApprovalMode::Auto));
    assert_eq!(hello.version, env!("CARGO_PKG_VERSION"));
    let cases = [
        (Some(read()), None),
        (Some(Asked::ListFiles(v1::ListFilesRequest::default())), Some("TOO_LARGE")),
        (
            Some(Asked::SearchFiles(v1::SearchFilesRequest { pattern: "x".to_owned(), ..Default::default() })),
            Some("INTERNAL"),
        ),
        (Some(Asked::ReadFiles(v1::ReadFilesRequest::default())), Some("INVALID_REQUEST")),
        (None, Some("UNAVAILABLE")),
    ];
    for (number, (question, expected)) in (1..).zip(cases) {
        ask(&scene, number, HOUR, question);
        assert_eq!(answered(&scene, number).await.as_deref(), expected);
    }
}

/// A batch that waits for its content, and all that waits behind it, delay no answer; each is carried out afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_are_answered_while_batches_wait() {
    const BATCHES: u32 = 50;
    let (scene, _) = scene().await;
    let connections = || scene.server.script.lock().unwrap().hellos.len();
    let before = connections();
    scene.server.send_contents(false);
    let late = aptix_engine::digest::sha256(b"late").to_string();
    scene.server.script.lock().unwrap().blobs.insert(late.clone(), b"late".to_vec());
    for number in 1..=BATCHES {
        scene.server.send(batch(number, "x.txt", blob(&late, 4)));
    }
    for number in 1..4 {
        ask(&scene, number, HOUR, read());
        assert_eq!(answered(&scene, number).await, None);
    }
    assert_eq!(scene.server.script.lock().unwrap().reports.len(), 1, "the batches wait");
    scene.server.send_contents(true);
    let report = scene.report(1 + BATCHES as usize, 1).await;
    assert_eq!(report.outcome(), v1::Outcome::Applied);
    assert_eq!(connections(), before, "the connection lasted");
}

/// A question ends with its time or its caller, and is not answered then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_is_not_wanted_any_more_ends() {
    let (scene, scripted) = scene().await;
    ask(&scene, 1, HOUR, stat());
    ask(&scene, 2, Duration::from_millis(1), stat());
    eventually("the first is worked on", || scripted.begun.load(Ordering::SeqCst) > 0).await;
    scene.server.ask(Message::QuestionCancelled(v1::QuestionCancelled { question_id: 1 }));
    ask(&scene, 3, HOUR, read());
    assert_eq!(answered(&scene, 3).await, None);
    let over = || scripted.ended.load(Ordering::SeqCst) == scripted.begun.load(Ordering::SeqCst);
    eventually("both have ended", over).await;
    assert_eq!(scene.server.script.lock().unwrap().answers.len(), 1);
}

/// Eight are worked on at one time and 64 are open; a server that asks more is refused those.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_are_bounded_and_end_with_the_connection() {
    let (scene, scripted) = scene().await;
    for number in 1..=70 {
        ask(&scene, number, HOUR, stat());
    }
    for number in 65..=70 {
        assert_eq!(answered(&scene, number).await.as_deref(), Some("RESOURCE_EXHAUSTED"));
    }
    eventually("eight are worked on", || scripted.begun.load(Ordering::SeqCst) == 8).await;
    let before = scene.server.script.lock().unwrap().hellos.len();
    scene.server.end_watch();
    eventually("they end with the connection", || scripted.ended.load(Ordering::SeqCst) == 8).await;
    eventually("it connects again", || scene.server.script.lock().unwrap().hellos.len() > before).await;
    scene.server.send(batch(1, "x.txt", None));
    scene.report(2, 1).await;
    ask(&scene, 1, HOUR, read());
    assert_eq!(answered(&scene, 1).await, None);
    assert_eq!(scripted.begun.load(Ordering::SeqCst), 8, "what waited was not begun");
    assert_eq!(scene.server.script.lock().unwrap().answers.len(), 7);
}

/// Two previews are worked on at one time: other questions always find a place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn previews_leave_places_to_other_questions() {
    let (scene, scripted) = scene().await;
    for number in 1..=20 {
        ask(&scene, number, HOUR, Asked::Preview(v1::Edit::default()));
    }
    eventually("two are worked on", || scripted.begun.load(Ordering::SeqCst) == 2).await;
    for number in 21..=30 {
        ask(&scene, number, HOUR, read());
        assert_eq!(answered(&scene, number).await, None);
    }
    assert_eq!(scripted.begun.load(Ordering::SeqCst), 2);
}

/// To a server that takes no answers the agent makes no more of them than it has places and room on their way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_not_taken_are_bounded() {
    /// Eight places, four messages that wait to be sent, and four at most in the transport and at the server, which was waiting.
    const MOST: usize = 8 + 4 + 4;
    let (scene, scripted) = scene().await;
    scene.server.hear_answers(false);
    for question_id in 1..=60 {
        ask(&scene, question_id, HOUR, read_file("large"));
    }
    eventually("it makes answers", || scripted.begun.load(Ordering::SeqCst) >= 12).await;
    // It has time for more while it applies a batch.
    scene.server.send(batch(1, "y.txt", create("")));
    eventually("it applies it", || scene.place.path().join("ws/y.txt").exists()).await;
    let made = scripted.begun.load(Ordering::SeqCst);
    assert!(made <= MOST, "{made} answers were made, and none was taken");
    scene.server.hear_answers(true);
    let heard = || scene.server.script.lock().unwrap().answers.len();
    eventually("all are answered", || heard() == 60).await;
}
