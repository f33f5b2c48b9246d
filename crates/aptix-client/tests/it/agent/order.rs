//! The order in which reports come.

use aptix_client::agent::Approve;
use aptix_engine::digest::sha256;
use tonic::Status;

use super::scene::{Scene, append, batch, eventually, id, insert};

/// The server takes a file's content from the report that comes last: one that is refused for a while is not overtaken by that of a later batch
/// about the same file. What the server has of the file after such a late report is compared with the disk.
#[tokio::test]
async fn reports_about_one_file_come_in_the_order_of_their_batches() {
    let scene = Scene::set(Approve::Auto);
    // As often as a report is tried before other work goes on.
    scene.server.script.lock().unwrap().refuse_report = std::iter::repeat_n(Status::unavailable(""), 6).collect();
    scene.server.send(insert(1));
    scene.server.send(batch(2, "a.txt", append("3\n")));
    eventually("both are reported", || scene.server.script.lock().unwrap().reports.len() == 8).await;
    assert_eq!(scene.file("a.txt"), "1\n2\n3\n");
    let reported = scene.server.script.lock().unwrap().reports.clone();
    let reported: Vec<_> = reported.iter().map(|report| &report.batch_id).collect();
    assert_eq!(reported, [&vec![id(1); 7], &vec![id(2)]].into_iter().flatten().collect::<Vec<_>>());
    // The fake has no file: what is on disk differs.
    let local = || scene.server.script.lock().unwrap().locals.first().cloned();
    eventually("the file is compared", || local().is_some()).await;
    let [file] = local().unwrap().report.unwrap().files.try_into().unwrap();
    assert_eq!((file.path.as_str(), file.sha256()), ("a.txt", sha256(b"1\n2\n3\n").to_string().as_str()));
}
