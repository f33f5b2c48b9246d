//! What operators see of a running server: its metrics, the dashboard and the alerts made of them, and the access log.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use aptix_model::wire::v1;
use aptix_model::wire::v1::agent_service_client::AgentServiceClient;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_server::metrics::{Kind, Metric};
use serde_json::Value;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

use crate::process::Program;
use crate::server::{connect_agent, create_text, hello, next, next_event, submit};

/// A server whose metrics can be scraped, and what it logs.
struct Watched {
    program: Program,
    metrics: String,
    log: mpsc::Receiver<Value>,
}

impl Watched {
    fn start(dir: &Path) -> Self {
        let config = dir.join("server.toml");
        #[expect(clippy::disallowed_methods, reason = "a configuration in the test's own directory")]
        std::fs::write(&config, "metrics = '127.0.0.1:0'\nheartbeat_seconds = 1\n").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
        command.args(["--listen", "127.0.0.1:0", "--log-format", "json"]);
        command.args(["--log", "info,aptix_server::access=debug", "--config"]).arg(config);
        command.arg("--data-dir").arg(dir.join("data")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut program = Program::spawn(command);
        let stderr = BufReader::new(program.stderr());
        let (sender, log) = mpsc::sync_channel(100_000);
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        let mut watched = Self { program, metrics: String::new(), log };
        let line = watched.logged(|line| line["message"] == "metrics can be scraped");
        watched.metrics = line["address"].as_str().unwrap().to_owned();
        watched
    }

    /// The next line of the log that this is true of.
    fn logged(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.log.recv_timeout(Duration::from_secs(120)).unwrap();
            if wanted(&line) {
                return line;
            }
        }
    }

    /// The next call in the access log that this is true of.
    fn call(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        self.logged(|line| line["target"] == "aptix_server::access" && wanted(line))
    }

    async fn channel(&self) -> Channel {
        Endpoint::new(format!("http://{}", self.program.address)).unwrap().connect().await.unwrap()
    }

    /// What an HTTP request is answered: its status line and its body.
    fn http(&self, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.metrics).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    /// Every series of a scrape with its value.
    fn scrape(&self) -> BTreeMap<String, f64> {
        let (status, body) = self.http("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n");
        assert_eq!(status, "HTTP/1.1 200 OK");
        let series = body.lines().filter(|line| !line.starts_with('#'));
        series
            .map(|line| line.rsplit_once(' ').unwrap())
            .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
            .collect()
    }

    /// Scrapes until a series has this value, or a greater one.
    fn scrape_until(&self, series: &str, value: f64) -> BTreeMap<String, f64> {
        let began = Instant::now();
        loop {
            let scraped = self.scrape();
            if scraped.get(series).is_some_and(|found| *found >= value) {
                return scraped;
            }
            assert!(began.elapsed() < Duration::from_secs(120), "{series} is not {value}: {scraped:#?}");
            std::thread::yield_now();
        }
    }
}

/// A little of everything that is counted.
async fn load(watched: &Watched) {
    let channel = watched.channel().await;
    let mut batches = BatchServiceClient::new(channel.clone());
    let mut agent = AgentServiceClient::new(channel);
    let (_sender, mut feed) = connect_agent(&mut agent, hello("w", "a")).await.unwrap();
    next(&mut feed).await.unwrap();
    for number in 0..3 {
        batches.submit_batch(submit("w", &format!("r{number}"), vec![create_text("a", "text")])).await.unwrap();
        next_event(&mut feed).await.unwrap();
    }
    let bad = batches.submit_batch(submit("no such id!", "r", vec![])).await.unwrap_err();
    assert_eq!(bad.code(), Code::InvalidArgument);
    watched.scrape_until("aptix_agents_connected", 1.0);
}

/// The whole server is scraped under a little load: each name is in the table with its kind and its labels, and what was done is counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_scrape_counts_what_was_done_and_has_what_the_table_says() {
    let dir = tempfile::tempdir().unwrap();
    let watched = Watched::start(dir.path());
    load(&watched).await;
    let scraped = watched.scrape_until("aptix_calls_total{method=\"AgentService/Serve\",code=\"CANCELLED\"}", 1.0);
    for (series, value) in [
        ("aptix_calls_total{method=\"BatchService/SubmitBatch\",code=\"OK\"}", 3.0),
        ("aptix_calls_total{method=\"BatchService/SubmitBatch\",code=\"INVALID_ARGUMENT\"}", 1.0),
        ("aptix_call_seconds_count{method=\"BatchService/SubmitBatch\"}", 4.0),
        ("aptix_refused_calls_total{reason=\"INVALID_REQUEST\"}", 1.0),
        ("aptix_batch_steps_total{state=\"APPROVED\"}", 3.0),
        ("aptix_feed_lag_seconds_count", 3.0),
        ("aptix_calls_in_flight{method=\"BatchService/SubmitBatch\"}", 0.0),
        ("aptix_store_healthy", 1.0),
    ] {
        assert_eq!(scraped.get(series), Some(&value), "{series} in {scraped:#?}");
    }
    for series in ["aptix_call_received_bytes_total", "aptix_call_sent_bytes_total"] {
        assert!(scraped[&format!("{series}{{method=\"BatchService/SubmitBatch\"}}")] > 10.0, "{scraped:#?}");
    }
    assert!(scraped["aptix_store_group_writes_sum"] >= 3.0 && scraped["aptix_disk_free_bytes"] > 1.0, "{scraped:#?}");
    assert!(
        !scraped.contains_key("aptix_call_seconds_count{method=\"AgentService/Serve\"}"),
        "a stream has no latency"
    );
    for series in scraped.keys() {
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let labels: Vec<_> = labels.split(',').filter_map(|pair| Some(pair.split_once('=')?.0)).collect();
        let metric = metric(name).unwrap_or_else(|| panic!("{series} is not in the table"));
        let expected = metric.description().labels;
        assert_eq!(
            labels.iter().filter(|label| **label != "le").collect::<Vec<_>>(),
            expected.iter().collect::<Vec<_>>()
        );
    }
}

/// Other requests are refused by name, a head without an end is cut off, and connections that send nothing keep no scrape away for long.
#[test]
fn only_scrapes_are_answered_and_idle_connections_do_not_stop_them() {
    let dir = tempfile::tempdir().unwrap();
    let watched = Watched::start(dir.path());
    assert_eq!(watched.http("GET / HTTP/1.1\r\n\r\n").0, "HTTP/1.1 404 Not Found");
    assert_eq!(watched.http("POST /metrics HTTP/1.1\r\n\r\n").0, "HTTP/1.1 405 Method Not Allowed");
    assert_eq!(watched.http(&"x".repeat(9 << 10)).0, "HTTP/1.1 400 Bad Request");
    let idle: Vec<_> = (0..100).map(|_| TcpStream::connect(&watched.metrics).unwrap()).collect();
    assert!(watched.scrape().contains_key("aptix_start_time_seconds"));
    drop(idle);
}

/// A caller that goes is told apart from one whose time is up.
#[tokio::test(flavor = "multi_thread")]
async fn a_callers_deadline_is_told_apart_from_its_going() {
    let dir = tempfile::tempdir().unwrap();
    let watched = Watched::start(dir.path());
    let mut batches = BatchServiceClient::new(watched.channel().await);
    let stored = batches.submit_batch(submit("w", "r", vec![create_text("a", "")])).await.unwrap().into_inner();
    let watch = v1::WatchBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: stored.batch.unwrap().batch_id,
        ..v1::WatchBatchRequest::default()
    };
    drop(batches.watch_batch(watch.clone()).await.unwrap());
    let ended = watched.call(|call| call["Method"] == "BatchService/WatchBatch");
    assert_eq!(ended["Code"], "CANCELLED", "{ended}");
    let mut timed = Request::new(watch);
    // The call has to be under way by then.
    timed.set_timeout(Duration::from_secs(5));
    let mut states = batches.watch_batch(timed).await.unwrap().into_inner();
    let ended = loop {
        if let Err(ended) = states.message().await {
            break ended;
        }
    };
    assert_eq!(ended.code(), Code::DeadlineExceeded, "{ended:?}");
    let ended = watched.call(|call| call["Method"] == "BatchService/WatchBatch");
    assert_eq!(ended["Code"], "DEADLINE_EXCEEDED", "{ended}");
}

/// Each call has one line with what is known of it, as the page says, and nothing that is secret.
#[tokio::test(flavor = "multi_thread")]
async fn each_call_is_in_the_access_log_once() {
    let dir = tempfile::tempdir().unwrap();
    let watched = Watched::start(dir.path());
    let made = Command::new(env!("CARGO_BIN_EXE_aptix-server"))
        .args(["token", "create", "--workspace", "*", "--role", "orchestrator", "--name", "ci", "--data-dir"])
        .arg(dir.path().join("data"))
        .output()
        .unwrap();
    let secret = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let mut batches = BatchServiceClient::new(watched.channel().await);
    let mut signed = Request::new(submit("w", "r", vec![create_text("a", "the content")]));
    signed.metadata_mut().insert("authorization", format!("Bearer {secret}").parse().unwrap());
    let stored = batches.submit_batch(signed).await.unwrap().into_inner().batch.unwrap();
    let refused = batches.submit_batch(submit("w", "r", vec![])).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    let call = watched.call(|call| call["Method"] == "BatchService/SubmitBatch");
    let expected = [("Code", "OK"), ("TokenName", "ci"), ("WorkspaceId", "w"), ("BatchId", stored.batch_id.as_str())];
    for (field, value) in expected {
        assert_eq!(call[field], value, "{field} of {call}");
    }
    assert!(call["ReceivedBytes"].as_u64().unwrap() > 10 && call["SentBytes"].as_u64().unwrap() > 10, "{call}");
    assert!(!call.to_string().contains(&secret) && !call.to_string().contains("the content"), "{call}");
    let anonymous = watched.call(|call| call["Method"] == "BatchService/SubmitBatch");
    assert_eq!((&anonymous["Code"], &anonymous["TokenName"]), (&"UNAUTHENTICATED".into(), &Value::Null));
    let page = include_str!("../../../../docs/reference/logs.md");
    let section = page.split_once("## Access log").unwrap().1.split_once("\n## ").unwrap().0;
    let documented: BTreeSet<_> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let logged: BTreeSet<_> = call.as_object().unwrap().keys().map(String::as_str).collect();
    let logged: BTreeSet<_> =
        logged.into_iter().filter(|key| !["timestamp", "level", "target"].contains(key)).collect();
    assert_eq!(logged, documented);
}

/// The metric that a series belongs to: its name, or that of a histogram with a part behind it.
fn metric(series: &str) -> Option<Metric> {
    Metric::ALL.iter().copied().find(|metric| {
        let description = metric.description();
        let part = series.strip_prefix(description.name);
        part.is_some_and(|part| match description.kind {
            Kind::Histogram(_) => ["_bucket", "_sum", "_count"].contains(&part),
            Kind::Counter | Kind::Gauge => part.is_empty(),
        })
    })
}

/// The page has a row for each metric of the table, and no other.
#[test]
fn the_page_has_the_rows_of_the_table() {
    let page = include_str!("../../../../docs/reference/metrics.md");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).map(str::to_owned).collect();
    let expected = Metric::ALL.iter().map(|metric| {
        let description = metric.description();
        let labels: Vec<_> = description.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "-".to_owned() } else { labels.join(", ") };
        format!("| `{}` | {} | {labels} | {} |", description.name, description.kind.word(), description.help)
    });
    assert_eq!(rows, expected.collect::<Vec<_>>());
}

/// The dashboard and the alerts name nothing that a server does not count, and the dashboard shows every metric.
#[test]
fn the_dashboard_and_the_alerts_name_metrics_of_the_table() {
    let dashboard = include_str!("../../../../deploy/grafana/aptix.json");
    let rules = include_str!("../../../../deploy/prometheus/aptix.rules.yml");
    let dashboard: Value = serde_json::from_str(dashboard).unwrap();
    let targets = dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let shown: Vec<_> = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    let mut used = BTreeSet::new();
    for text in shown.iter().map(String::as_str).chain([rules]) {
        let words = text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
        for word in words.filter(|word| word.starts_with("aptix_")) {
            let metric = metric(word).unwrap_or_else(|| panic!("{word} is not in the table"));
            used.insert(metric.description().name);
        }
    }
    let all: BTreeSet<_> = Metric::ALL.iter().map(|metric| metric.description().name).collect();
    assert_eq!(used, all);
}
