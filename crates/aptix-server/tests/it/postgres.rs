//! The program over a PostgreSQL database: its start, its end, what it does while PostgreSQL is down, and which of its outputs have a
//! password: none.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

use crate::cluster::{Cluster, Database};
use crate::process::{Program, noise};
use crate::server::{create_text, next, submit};

/// A password that no output may have.
const PASSWORD: &str = "hush-hush";

/// A command of the program that gets the store by the environment.
fn program(arguments: &[&str], store: &str, data_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
    command.args(arguments).arg("--data-dir").arg(data_dir).env("APTIX_SERVER_STORE", store);
    command.env_remove("APTIX_LOG").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn server(store: &str, data_dir: &Path) -> Command {
    program(&["--listen", "127.0.0.1:0", "--log", "warn"], store, data_dir)
}

/// Runs a command to its end: its exit code, and all that it printed.
pub(crate) fn run(mut command: Command) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
}

async fn connect(program: &Program) -> Channel {
    Endpoint::new(format!("http://{}", program.address)).unwrap().connect().await.unwrap()
}

async fn read_back(client: &mut BatchServiceClient<Channel>, kept: &[v1::Batch]) {
    for batch in kept {
        let which = Some(v1::get_batch_request::Batch::BatchId(batch.batch_id.clone()));
        let (workspace_id, view) = (batch.workspace_id.clone(), v1::BatchView::Full.into());
        let request = v1::GetBatchRequest { workspace_id, batch: which, view };
        assert_eq!(client.get_batch(request).await.unwrap().into_inner().batch.as_ref(), Some(batch));
    }
}

/// What was acknowledged is there after an orderly end and after a kill, and the next server has the database at once.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_outlives_the_server() {
    let Some(database) = Database::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut kept: Vec<v1::Batch> = Vec::new();
    for (round, signal) in ["-TERM", "-KILL", "-INT", "-KILL"].into_iter().enumerate() {
        let program = Program::spawn(server(&database.address, dir.path()));
        let mut client = BatchServiceClient::new(connect(&program).await);
        read_back(&mut client, &kept).await;
        let request = submit("w", &format!("r{round}"), vec![create_text("a", "text")]);
        kept.push(client.submit_batch(request).await.unwrap().into_inner().batch.unwrap());
        assert_eq!(kept.last().unwrap().revision, kept.len() as u64);
        program.signal(signal);
        assert_eq!(program.end(), if signal == "-KILL" { None } else { Some(0) }, "{signal}");
    }
    assert!(!dir.path().join("version").exists() && !dir.path().join("0.jnl").exists(), "nothing is in the directory");
}

/// What PostgreSQL does, as the writers know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Up,
    Down,
    /// The writers finish what they began.
    Last,
}

/// Submits batches until it is stopped, each again until it is acknowledged; answers what was.
async fn write(channel: Channel, writer: usize, mut phase: watch::Receiver<Phase>) -> Vec<v1::Batch> {
    let (mut client, mut kept) = (BatchServiceClient::new(channel), Vec::new());
    while *phase.borrow() != Phase::Last {
        let text = noise(500, (writer * 1000 + kept.len()) as u64);
        let request = submit("w", &format!("r{writer}-{}", kept.len()), vec![create_text("a", &text)]);
        kept.push(loop {
            match client.submit_batch(request.clone()).await {
                Ok(answer) => break answer.into_inner().batch.unwrap(),
                Err(status) if status.code() == Code::Unavailable => {
                    phase.wait_for(|phase| *phase != Phase::Down).await.unwrap();
                }
                Err(status) => panic!("{status}"),
            }
        });
    }
    kept
}

/// While PostgreSQL is down the server refuses writes and reports that it does not serve; when PostgreSQL is back, it goes on by
/// itself. Whatever was acknowledged is there once, and revisions have no gap.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_goes_on_when_postgresql_is_back() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.create_database("store");
    let dir = tempfile::tempdir().unwrap();
    let program = Program::spawn({
        let mut command = server(&cluster.address("store"), dir.path());
        command.stderr(Stdio::null());
        command
    });
    let channel = connect(&program).await;
    let (phase, current) = watch::channel(Phase::Up);
    let mut writers: JoinSet<_> = (0..4).map(|writer| write(channel.clone(), writer, current.clone())).collect();
    let mut health = HealthClient::new(channel.clone());
    let mut states = health.watch(HealthCheckRequest { service: String::new() }).await.unwrap().into_inner();
    while next(&mut states).await.unwrap().status() != ServingStatus::Serving {}
    for is_killed in [false, true] {
        let mut client = BatchServiceClient::new(channel.clone());
        client.submit_batch(submit("v", &format!("r{is_killed}"), vec![create_text("a", "")])).await.unwrap();
        phase.send_replace(Phase::Down);
        if is_killed {
            cluster.kill();
        } else {
            cluster.stop_immediately();
        }
        while next(&mut states).await.unwrap().status() != ServingStatus::NotServing {}
        let refused = client.submit_batch(submit("v", "down", vec![create_text("a", "")])).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
        assert_eq!(run(program_status(dir.path())).0, Some(1));
        cluster.start_again();
        while next(&mut states).await.unwrap().status() != ServingStatus::Serving {}
        phase.send_replace(Phase::Up);
    }
    let mut client = BatchServiceClient::new(channel.clone());
    client.submit_batch(submit("v", "after", vec![create_text("a", "")])).await.unwrap();
    phase.send_replace(Phase::Last);
    let mut kept = Vec::new();
    while let Some(written) = writers.join_next().await {
        kept.extend(written.unwrap());
    }
    kept.sort_by_key(|batch| batch.revision);
    read_back(&mut client, &kept).await;
    // What was stored and not acknowledged was sent again until it was, so that no other batch is there.
    let revisions: Vec<_> = kept.iter().map(|batch| batch.revision).collect();
    assert_eq!(revisions, (1..=kept.len() as u64).collect::<Vec<_>>());
    // What watches its health ends with its grace only.
    drop((states, health, client, channel));
    program.signal("-TERM");
    assert_eq!(program.end(), Some(0));
}

fn program_status(data_dir: &Path) -> Command {
    program(&["status"], "", data_dir)
}

/// Two servers with databases of their own do not share a data directory: its socket leads to one of them.
#[test]
fn a_second_server_in_one_data_directory_is_refused() {
    let (Some(one), Some(two)) = (Database::new(), Database::new()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let first = Program::spawn(server(&one.address, dir.path()));
    for store in [two.address.as_str(), "embedded"] {
        let (code, said) = run(server(store, dir.path()));
        assert!(code == Some(3) && said.contains("in use by another server"), "{said}");
    }
    first.signal("-TERM");
    assert_eq!(first.end(), Some(0));
}

/// A cluster with TCP, a user with a password, and a database of that user.
fn with_password() -> Option<Cluster> {
    let cluster = Cluster::over_tcp("")?;
    cluster.start_again();
    cluster.sql("postgres", &format!("CREATE ROLE keeper LOGIN PASSWORD '{PASSWORD}'"));
    cluster.sql("postgres", "CREATE DATABASE store OWNER keeper");
    Some(cluster)
}

/// What the server cannot start with is named, with exit code 3; no output has the password, also not the log of everything.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_cannot_be_says_why_and_shows_no_password() {
    let Some(cluster) = with_password() else { return };
    let dir = tempfile::tempdir().unwrap();
    let port = cluster.port();
    let address = |password: &str, port: u16, database: &str| {
        format!("postgres://keeper:{password}@127.0.0.1:{port}/{database}?connect_timeout=5")
    };
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let cases = [
        (address(&format!("{PASSWORD}-wrong"), port, "store"), "password authentication failed"),
        (address(PASSWORD, port, "nothing"), "database \"nothing\" does not exist"),
        (address(PASSWORD, free, "store"), "onnection refused"),
        (format!("postgres://keeper:{PASSWORD}@database.invalid/store"), "database.invalid"),
        (format!("postgres://keeper:{PASSWORD}@127.0.0.1:{port}/store?sslmode=require"), "TLS"),
        (format!("postgres://keeper:{PASSWORD}@127.0.0.1:{port}/store?sslcert=x"), "\"sslcert\""),
        (format!("postgres://keeper:{PASSWORD}/x@127.0.0.1:{port}/store"), "percent-encoded"),
    ];
    for (store, expected) in cases {
        for log in ["warn", "trace"] {
            let (code, said) = run(program(&["--listen", "127.0.0.1:0", "--log", log], &store, dir.path()));
            assert_eq!(code, Some(3), "{said}");
            assert!(said.contains(expected), "{expected} in {said}");
            assert!(!said.contains("hush"), "{said}");
        }
    }
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command =
        program(&["--listen", "127.0.0.1:0", "--log", "trace"], &address(PASSWORD, port, "store"), dir.path());
    let serving = Program::spawn({
        command.stderr(log.reopen().unwrap());
        command
    });
    let mut client = BatchServiceClient::new(connect(&serving).await);
    client.submit_batch(submit("w", "r", vec![create_text("a", "")])).await.unwrap();
    let (_, said) = run(program(&["check-config"], &address(PASSWORD, port, "store"), dir.path()));
    serving.signal("-TERM");
    assert_eq!(serving.end(), Some(0));
    let logged = std::fs::read_to_string(log.path()).unwrap();
    assert!(logged.contains("keeper:***@"), "what is served is logged");
    for output in [&said, &logged, &cluster.log()] {
        assert!(!output.contains("hush"), "{output}");
    }
}

/// An authority with its certificate in PEM.
fn authority(name: &str) -> (Issuer<'static, KeyPair>, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    (Issuer::new(params, key), pem)
}

/// A cluster whose certificate names `localhost`, and takes connections over TLS alone; with the file of its authority, and that of
/// another one.
fn with_tls(dir: &TempDir) -> Option<(Cluster, [String; 2])> {
    let cluster = Cluster::over_tcp("ssl = on\nssl_cert_file = 'server.pem'\nssl_key_file = 'key.pem'\n")?;
    let (issuer, pem) = authority("ours");
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "database");
    let key = KeyPair::generate().unwrap();
    cluster.put("server.pem", &params.signed_by(&key, &issuer).unwrap().pem());
    cluster.put("key.pem", &key.serialize_pem());
    cluster.put("pg_hba.conf", "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n");
    cluster.start_again();
    cluster.sql("postgres", &format!("CREATE ROLE keeper LOGIN PASSWORD '{PASSWORD}'"));
    cluster.sql("postgres", "CREATE DATABASE store OWNER keeper");
    let files = [("ca.pem", pem), ("other.pem", authority("another").1)].map(|(name, pem)| {
        let path = dir.path().join(name);
        #[expect(clippy::disallowed_methods, reason = "a test's own file")]
        std::fs::write(&path, pem).unwrap();
        path.display().to_string()
    });
    Some((cluster, files))
}

/// A certificate of the authority is accepted for its own name; one of another authority is refused, and so is one of another
/// name where that is asked for.
#[test]
fn the_certificate_of_the_database_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cluster, [ca, other])) = with_tls(&dir) else { return };
    let data = tempfile::tempdir().unwrap();
    let port = cluster.port();
    let address = |host: &str, query: &str| format!("postgres://keeper:{PASSWORD}@{host}:{port}/store?{query}");
    let accepted = [
        address("localhost", &format!("sslmode=verify-full&sslrootcert={ca}")),
        address("localhost", &format!("sslmode=verify-full&sslrootcert={ca}&channel_binding=require")),
        address("127.0.0.1", &format!("sslmode=verify-ca&sslrootcert={ca}")),
        address("127.0.0.1", &format!("sslmode=require&sslrootcert={ca}")),
        address("127.0.0.1", "sslmode=require"),
        address("127.0.0.1", "sslmode=prefer"),
    ];
    for store in accepted {
        let program = Program::spawn(server(&store, data.path()));
        program.signal("-TERM");
        assert_eq!(program.end(), Some(0), "{store}");
    }
    let refused = [
        (address("localhost", &format!("sslmode=verify-full&sslrootcert={other}")), "UnknownIssuer"),
        (address("localhost", &format!("sslmode=verify-ca&sslrootcert={other}")), "UnknownIssuer"),
        (address("127.0.0.1", &format!("sslmode=require&sslrootcert={other}")), "UnknownIssuer"),
        (address("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={ca}")), "not valid for name"),
        (address("localhost", "sslmode=verify-full&sslrootcert=/nonexistent/ca.pem"), "/nonexistent/ca.pem"),
        (address("127.0.0.1", "sslmode=disable"), "no encryption"),
    ];
    for (store, expected) in refused {
        let (code, said) = run(server(&store, data.path()));
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains(expected) && !said.contains("hush"), "{expected} in {said}");
    }
}

/// Commands ask the server through its socket while it runs, and open the database while none does.
#[tokio::test(flavor = "multi_thread")]
async fn commands_reach_the_store_with_and_without_a_server() {
    let Some(database) = Database::new() else { return };
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = dir.path();
    let done = |arguments: &[&str], store: &str| {
        let (code, said) = run(program(arguments, store, data));
        assert_eq!(code, Some(0), "{arguments:?}: {said}");
        said
    };
    let create = ["token", "create", "--workspace", "*", "--role", "operator", "--name"];
    done(&[&create[..], &["before"]].concat(), &database.address);
    done(&["workspace", "create", "own"], &database.address);
    let program = Program::spawn(server(&database.address, data));
    // The socket in the directory is enough.
    done(&[&create[..], &["meanwhile"]].concat(), "");
    assert!(done(&["status"], "").contains("tokens: 2 in force"));
    let [first, second] = ["first", "second"].map(|name| out.path().join(name).to_str().unwrap().to_owned());
    done(&["backup", "--to", &first], "");
    program.signal("-TERM");
    assert_eq!(program.end(), Some(0));
    let listed = done(&["token", "list"], &database.address);
    assert!(listed.contains("before") && listed.contains("meanwhile"), "{listed}");
    assert!(done(&["workspace", "list"], &database.address).contains("own"));
    done(&["retention", "--dry-run"], &database.address);
    done(&["backup", "--to", &second], &database.address);
    let (code, said) = run(self::program(&["token", "list"], "", data));
    assert!(code == Some(3) && said.contains("APTIX_SERVER_STORE"), "{said}");
    let (code, said) = run(server_that_accepts_loss(&database.address, data));
    assert!(code == Some(3) && said.contains("--accept-loss"), "{said}");
}

/// A backup of a data directory becomes a store in a database, and a backup of that a data directory again; a database that has a
/// store is left as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_moves_a_store_into_a_database_and_back() {
    let Some(database) = Database::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let [first, back, out] = ["first", "back", "out"].map(|name| dir.path().join(name));
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let (one, two) = (one.to_str().unwrap(), two.to_str().unwrap());
    let done = |arguments: &[&str], store: &str, data: &Path| {
        let (code, said) = run(program(arguments, store, data));
        assert_eq!(code, Some(0), "{arguments:?}: {said}");
        said
    };
    let serving = Program::spawn(server("embedded", &first));
    let mut client = BatchServiceClient::new(connect(&serving).await);
    let mut kept = Vec::new();
    for number in 0..5 {
        let request = submit("w", &format!("r{number}"), vec![create_text("a", &noise(3000, number))]);
        kept.push(client.submit_batch(request).await.unwrap().into_inner().batch.unwrap());
    }
    done(&["backup", "--to", one], "", &first);
    serving.signal("-TERM");
    serving.end();
    let said = done(&["restore", "--from", one], &database.address, &out);
    assert!(said.contains("into postgres://") && !out.exists(), "{said}");
    let (code, said) = run(program(&["restore", "--from", one], &database.address, &out));
    assert_eq!(code, Some(3), "{said}");
    let serving = Program::spawn(server(&database.address, &out));
    let mut client = BatchServiceClient::new(connect(&serving).await);
    read_back(&mut client, &kept).await;
    let request = submit("w", "later", vec![create_text("b", "")]);
    kept.push(client.submit_batch(request).await.unwrap().into_inner().batch.unwrap());
    serving.signal("-TERM");
    serving.end();
    done(&["backup", "--to", two], &database.address, &out);
    done(&["restore", "--from", two], "", &back);
    let serving = Program::spawn(server("", &back));
    read_back(&mut BatchServiceClient::new(connect(&serving).await), &kept).await;
}

fn server_that_accepts_loss(store: &str, data_dir: &Path) -> Command {
    program(&["--listen", "127.0.0.1:0", "--accept-loss"], store, data_dir)
}
