//! TLS between real processes: who is trusted, what is reloaded, and that handshakes which do not end keep nobody out.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rcgen::SanType;

use crate::certificates::{Authority, Pair};
use crate::documents::create;
use crate::processes::{Machine, Server, binary, eventually, write};

/// The configuration of a server with the certificate `server.pem`, and more.
fn configure(machine: &Machine, more: &str) {
    let directory = machine.path("tls");
    let [certificate, key] = ["server.pem", "server-key.pem"].map(|name| directory.join(name).display().to_string());
    let tls = format!("[tls]\ncertificate = {certificate:?}\nkey = {key:?}\n");
    write(&machine.path("server.toml"), &format!("{more}\n{tls}"));
}

/// A server that the authority vouches for. The authority's certificate is in `ca.pem`.
fn serve(machine: &Machine, authority: &Authority, more: &str) -> Server {
    write(&machine.path("ca.pem"), &authority.pem);
    authority.server(&["127.0.0.1", "server.example"]).put(&machine.path("tls"), "server");
    configure(machine, more);
    start(machine)
}

/// One that asks clients for certificates of the same authority.
fn serve_certified(machine: &Machine, authority: &Authority, more: &str) -> Server {
    write(&machine.path("ca.pem"), &authority.pem);
    authority.server(&["127.0.0.1"]).put(&machine.path("tls"), "server");
    configure(machine, more);
    let config = fs::read_to_string(machine.path("server.toml")).unwrap();
    let ca = machine.path("ca.pem").display().to_string();
    write(&machine.path("server.toml"), &format!("{config}client_ca = {ca:?}\n"));
    start(machine)
}

fn start(machine: &Machine) -> Server {
    let config = machine.path("server.toml");
    machine.server_that(|command| {
        command.arg("--config").arg(config);
    })
}

fn url(server: &Server) -> String {
    format!("https://{}", server.address)
}

fn said(output: &Output) -> String {
    format!("{:?} {}", output.status.code(), String::from_utf8_lossy(&output.stderr))
}

/// Lists the batches of the workspace `demo`.
fn batches(machine: &Machine, url: &str, more: &[&str]) -> Command {
    let mut command = machine.aptix(&["batches", "--server", url, "--workspace", "demo"]);
    command.args(more);
    command
}

/// A server whose authority is named is used by authors and the agent; one that is not trusted is sent nothing, and the agent goes
/// on once its file names another authority.
#[test]
fn a_server_has_to_prove_who_it_is() {
    let machine = Machine::new();
    let (authority, other) = (Authority::new("ours"), Authority::new("theirs"));
    let server = serve(&machine, &authority, "");
    let url = url(&server);
    write(&machine.path("agent-ca.pem"), &other.pem);
    let _agent = machine.agent_at(&url, "auto", |command| {
        command.env("APTIX_CA", "agent-ca.pem");
    });
    for (address, more) in [
        (url.clone(), &[] as &[&str]),
        (url.clone(), &["--ca", "agent-ca.pem"]),
        (url.replace("127.0.0.1", "localhost"), &["--ca", "ca.pem"]),
    ] {
        let refused = said(&batches(&machine, &address, more).env("APTIX_TOKEN", "secret").output().unwrap());
        let told = refused.starts_with("Some(3)") && refused.contains("not trusted") && refused.contains("--ca");
        assert!(told && !refused.contains("secret"), "{refused}");
    }
    write(&machine.path("empty.pem"), "");
    let refused = said(&batches(&machine, &url, &["--ca", "empty.pem"]).output().unwrap());
    assert!(refused.starts_with("Some(1)") && refused.contains("empty.pem"), "{refused}");
    eventually("the agent trusts no such server", || machine.logged("agent.log").contains("not trusted"));
    write(&machine.path("agent-ca.pem"), &authority.pem);
    write(&machine.path("sent.json"), &create("a.txt", "text\n"));
    let arguments = ["submit", "--server", &url, "--workspace", "demo", "--wait", "--ca", "ca.pem", "sent.json"];
    let sent = machine.aptix(&arguments).output().unwrap();
    assert!(sent.status.success(), "{}", said(&sent));
    assert_eq!(machine.files(), [("a.txt".to_owned(), "text\n".to_owned())]);
}

/// A server without TLS is not called one that is not trusted: no authority would help.
#[test]
fn a_server_without_tls_is_named_as_such() {
    let machine = Machine::new();
    let server = machine.server();
    let refused = said(&batches(&machine, &url(&server), &[]).output().unwrap());
    let told = refused.starts_with("Some(3)") && refused.contains("does not speak TLS there");
    assert!(told && refused.contains("http://HOST:PORT") && !refused.contains("--ca"), "{refused}");
}

/// A token is not sent in clear text to another machine unless the user says so.
#[test]
fn a_token_is_not_sent_in_clear_text() {
    let machine = Machine::new();
    let call = |more: &[&str]| {
        let mut command = batches(&machine, "http://192.0.2.1:1", more);
        command.env("APTIX_TOKEN", "secret").stderr(Stdio::piped());
        command
    };
    let refused = said(&call(&[]).output().unwrap());
    let told = refused.starts_with("Some(1)") && refused.contains("--token-in-clear-text");
    assert!(told && !refused.contains("secret"), "{refused}");
    let mut login = machine.aptix(&["login", "--server", "http://192.0.2.1:1"]);
    let refused = said(&crate::processes::with_input(&mut login, "secret\n"));
    assert!(refused.contains("--token-in-clear-text") && !refused.contains("secret"), "{refused}");
}

/// Whether the server is reached by who trusts this authority alone. It answers that there is no such workspace.
fn is_trusted(machine: &Machine, server: &Server, authority: &str) -> bool {
    batches(machine, &url(server), &["--ca", authority]).output().unwrap().status.code() == Some(1)
}

/// A changed certificate is used once it is whole; one that is cut off, of another key, or readable by others changes nothing.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own files")]
fn a_changed_certificate_is_used_once_it_is_whole() {
    let machine = Machine::new();
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    let server = serve(&machine, &first, "");
    write(&machine.path("second.pem"), &second.pem);
    assert!(is_trusted(&machine, &server, "ca.pem") && !is_trusted(&machine, &server, "second.pem"));
    let Pair { certificate, key } = second.server(&["127.0.0.1"]);
    let refusals = || machine.logged("server.log").matches("of no use").count();
    let refused = |what: &str, before: usize| {
        eventually(what, || refusals() > before);
        assert!(is_trusted(&machine, &server, "ca.pem"), "{what}: {}", machine.logged("server.log"));
    };
    let files = ["tls/server.pem", "tls/server-key.pem"].map(|name| machine.path(name));
    let before = refusals();
    write(&files[0], &certificate[..certificate.len() / 2]);
    refused("a certificate is cut off", before);
    let before = refusals();
    write(&files[0], &certificate);
    refused("the key is that of another certificate", before);
    let before = refusals();
    fs::set_permissions(&files[1], fs::Permissions::from_mode(0o644)).unwrap();
    write(&files[1], &key);
    refused("others can read the key", before);
    fs::set_permissions(&files[1], fs::Permissions::from_mode(0o600)).unwrap();
    eventually("the new certificate is used", || is_trusted(&machine, &server, "second.pem"));
    assert!(!is_trusted(&machine, &server, "ca.pem"));
    assert!(!machine.logged("server.log").contains("PRIVATE KEY"));
}

/// A server does not start with files that cannot be used, and says what to do about them.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own files")]
fn a_server_refuses_files_that_it_cannot_use() {
    let machine = Machine::new();
    let authority = Authority::new("ours");
    let start = || {
        let mut command = Command::new(binary("aptix-server"));
        command.args(["--listen", "127.0.0.1:0", "--config"]).arg(machine.path("server.toml"));
        said(&command.arg("--data-dir").arg(machine.path("data")).output().unwrap())
    };
    configure(&machine, "");
    assert!(start().contains("server.pem"), "there is none");
    let pair = authority.server(&["127.0.0.1"]);
    let (_, key) = pair.put(&machine.path("tls"), "server");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = start();
    assert!(refused.starts_with("Some(3)") && refused.contains("chmod 0600"), "{refused}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let other = Pair { key: authority.server(&["127.0.0.1"]).key, ..pair };
    other.put(&machine.path("tls"), "server");
    let refused = start();
    assert!(refused.starts_with("Some(3)") && refused.contains("server-key.pem"), "{refused}");
}

/// A command proves who calls by a certificate, which needs no token.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own file")]
fn a_client_proves_who_calls_by_a_certificate() {
    let machine = Machine::new();
    let authority = Authority::new("ours");
    let server = serve_certified(&machine, &authority, "");
    let arguments = ["token", "create", "--workspace", "*", "--role", "orchestrator", "--name", "ann"];
    let mut command = Command::new(binary("aptix-server"));
    command.args(arguments).args(["--certificate", "dns:ann.example", "--data-dir"]).arg(machine.path("data"));
    let made = command.output().unwrap();
    assert!(made.status.success() && made.stdout.is_empty(), "{}", said(&made));
    let names = vec![SanType::DnsName("ann.example".try_into().unwrap())];
    authority.client(names).put(&machine.path("tls"), "ann");
    write(&machine.path("sent.json"), &create("a.txt", "text\n"));
    let send = |more: &[&str]| {
        let url = url(&server);
        let arguments = ["submit", "--server", &url, "--workspace", "demo", "--ca", "ca.pem", "sent.json"];
        said(&machine.aptix(&arguments).args(more).output().unwrap())
    };
    let refused = send(&[]);
    assert!(refused.starts_with("Some(1)") && refused.contains("UNAUTHENTICATED"), "{refused}");
    let sent = send(&["--client-certificate", "tls/ann.pem", "--client-key", "tls/ann-key.pem"]);
    assert!(sent.starts_with("Some(0)"), "{sent}");
    let log = machine.logged("server.log");
    assert!(log.contains("a call was refused") && log.contains("UNAUTHENTICATED"), "{log}");

    // The server refuses a certificate of another authority, which is no reason to wait for it.
    let names = vec![SanType::DnsName("ann.example".try_into().unwrap())];
    let (_, key) = Authority::new("theirs").client(names).put(&machine.path("tls"), "eve");
    let stranger = ["--client-certificate", "tls/eve.pem", "--client-key", "tls/eve-key.pem"];
    let refused = send(&stranger);
    assert!(refused.starts_with("Some(3)") && refused.contains("refuses the connection"), "{refused}");
    fs::set_permissions(key, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = send(&stranger);
    assert!(refused.starts_with("Some(1)") && refused.contains("chmod 0600"), "{refused}");
}

/// Where the server's metrics can be scraped.
fn scraped(machine: &Machine) -> String {
    let address = || {
        let log = machine.logged("server.log");
        let line = log.lines().find(|line| line.contains("metrics can be scraped"))?;
        let address = line.split_once("address=")?.1;
        Some(address.split_whitespace().next()?.to_owned())
    };
    eventually("the metrics can be scraped", || address().is_some());
    address().unwrap()
}

/// A metric with its labels, and 0 where it has no value yet.
fn metric(address: &str, series: &str) -> f64 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let page = std::io::read_to_string(stream).unwrap();
    let value = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value.map_or(0.0, |value| value.parse().unwrap())
}

/// Handshakes that fail are counted by their cause, and logged.
#[test]
fn failed_handshakes_are_counted_and_logged() {
    let machine = Machine::new();
    let authority = Authority::new("ours");
    let server = serve_certified(&machine, &authority, "metrics = \"127.0.0.1:0\"");
    let scraped = scraped(&machine);
    let stranger = Authority::new("theirs");
    write(&machine.path("theirs.pem"), &stranger.pem);
    let names = vec![SanType::DnsName("ann.example".try_into().unwrap())];
    stranger.client(names).put(&machine.path("tls"), "eve");
    let with_certificate = ["--ca", "ca.pem", "--client-certificate", "tls/eve.pem", "--client-key", "tls/eve-key.pem"];
    let cases: [(&str, &dyn Fn()); 4] = [
        ("not_tls", &|| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }),
        ("client_certificate", &|| drop(batches(&machine, &url(&server), &with_certificate).output().unwrap())),
        ("refused_by_client", &|| assert!(!is_trusted(&machine, &server, "theirs.pem"))),
        ("disconnected", &|| drop(TcpStream::connect(&server.address).unwrap())),
    ];
    for (cause, fail) in cases {
        let failed = || metric(&scraped, &format!("aptix_failed_handshakes_total{{cause=\"{cause}\"}}"));
        assert!(failed() < 1.0, "{cause}");
        fail();
        eventually(cause, || failed() >= 1.0);
        let log = machine.logged("server.log");
        let is_logged = log.lines().any(|line| line.contains("a TLS handshake failed") && line.contains(cause));
        assert_eq!(is_logged, cause != "disconnected", "{cause}: {log}");
    }
    assert!(is_trusted(&machine, &server, "ca.pem"));
}

/// The metrics have the end of the certificate that connections are shown.
#[test]
fn operators_see_when_the_certificate_expires() {
    let machine = Machine::new();
    let authority = Authority::new("ours");
    let server = serve(&machine, &authority, "metrics = \"127.0.0.1:0\"");
    let scraped = scraped(&machine);
    let expires = || metric(&scraped, "aptix_tls_certificate_expiry_timestamp_seconds");
    eventually("the metric is there", || expires() > 1.0e9);
    // One handshake that has not ended holds up no stop.
    let _idle = TcpStream::connect(&server.address).unwrap();
    assert!(is_trusted(&machine, &server, "ca.pem"));
    assert!(server.terminate());
    let log = machine.logged("server.log");
    assert!(!log.contains("cut off"), "{log}");
}

/// Handshakes that do not end, of as many connections as there may be, keep nobody out; each is closed after a while.
#[test]
fn handshakes_that_do_not_end_keep_nobody_out() {
    let machine = Machine::new();
    let authority = Authority::new("ours");
    let limits = "connections = 12\nconnections_per_caller = 12\nmetrics = \"127.0.0.1:0\"";
    let server = serve(&machine, &authority, limits);
    // The beginning of a ClientHello that says it has 64 KiB, and nothing.
    let begun: &[u8] = &[0x16, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff];
    let held: Vec<_> = (0..40)
        .map(|number| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            // One that was closed already makes room.
            let _ = stream.write_all(&begun[..number % (begun.len() + 1)]);
            stream
        })
        .collect();
    for _ in 0..5 {
        assert!(is_trusted(&machine, &server, "ca.pem"), "{}", machine.logged("server.log"));
    }
    for mut stream in held {
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let ended = std::io::copy(&mut stream, &mut std::io::sink());
        assert!(ended.as_ref().map_or_else(|error| error.kind() != ErrorKind::WouldBlock, |_| true), "{ended:?}");
    }
    let timed_out = metric(&scraped(&machine), "aptix_failed_handshakes_total{cause=\"timed_out\"}");
    assert!(timed_out >= 1.0, "the last of them took too long");
}

/// HTTP/2 is chosen where a client offers both protocols, and the socket of the owner needs no TLS.
#[test]
fn both_protocols_are_offered_and_the_owner_needs_neither() {
    use std::sync::Arc;
    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};
    let machine = Machine::new();
    let authority = Authority::new("ours");
    let server = serve(&machine, &authority, "");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let config = config.with_no_client_auth();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (offered, chosen) in [(&["h2", "http/1.1"][..], "h2"), (&["http/1.1"], "http/1.1")] {
        let mut config = config.clone();
        config.alpn_protocols = offered.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(&server.address).await.unwrap();
            connector.connect("127.0.0.1".try_into().unwrap(), stream).await.unwrap()
        });
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(chosen.as_bytes()));
    }
    assert!(list_workspaces(&machine.path("data")).status.success());
}

fn list_workspaces(data: &Path) -> Output {
    Command::new(binary("aptix-server")).args(["workspace", "list", "--data-dir"]).arg(data).output().unwrap()
}
