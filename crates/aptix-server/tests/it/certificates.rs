//! Certificates of clients: whom they stand for, by the table of rights that holds for tokens, and when they do not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use aptix_model::record::UnixMillis;
use aptix_model::token::{Role, Scope};
use aptix_model::wire::method::Method;
use aptix_model::wire::v1;
use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::identity::{NewToken, Registry, Secret};
use aptix_server::listen::incoming;
use aptix_server::mint;
use aptix_server::options::Options;
use aptix_server::serve::serve;
use aptix_server::store::Store;
use aptix_server::tls::{Tls, TlsFiles};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tonic::transport::{Endpoint, Uri};
use tonic::{Code, Status};

use crate::identity::{ROWS, admin, bearer, call, letter, make, new, one, store_with_workspaces, told, with};
use crate::place::{Place, durable};
use crate::server::{Clients, SOON, next};
use crate::until::until;

/// A server with TLS that asks clients for certificates of an authority.
struct Secure {
    authority: Issuer<'static, KeyPair>,
    pem: String,
    address: String,
    _files: TempDir,
    _serving: JoinSet<()>,
}

fn authority() -> (Issuer<'static, KeyPair>, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority");
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    (Issuer::new(params, key), pem)
}

fn issue(authority: &Issuer<'static, KeyPair>, names: Vec<SanType>) -> (CertificateDer<'static>, KeyPair) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.subject_alt_names = names;
    params.distinguished_name.push(DnType::CommonName, "leaf");
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, authority).unwrap().der().clone(), key)
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

impl Secure {
    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    async fn over(store: Arc<dyn Store>) -> Self {
        let (authority, pem) = authority();
        let files = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(vec!["server".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "server");
        let server_key = KeyPair::generate().unwrap();
        let [certificate, key, client_ca] = ["server.pem", "key.pem", "ca.pem"].map(|name| files.path().join(name));
        fs::write(&certificate, params.signed_by(&server_key, &authority).unwrap().pem()).unwrap();
        fs::write(&key, server_key.serialize_pem()).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&client_ca, &pem).unwrap();
        let tls = Tls::open(TlsFiles { certificate, key, client_ca: Some(client_ca) }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections = incoming(Some(listener), None, Some(tls));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let (_approvals, current) = tokio::sync::watch::channel(Approvals::default());
            let settings = (Options::default(), current);
            serve(store, settings, connections, std::future::pending()).await.unwrap();
        });
        Self { authority, pem, address, _files: files, _serving: serving }
    }

    /// A connection with a certificate of the authority that has these names, or with none.
    async fn connect(&self, names: Option<Vec<SanType>>) -> Clients {
        let certificate = names.map(|names| issue(&self.authority, names));
        self.connect_with(certificate).await.unwrap()
    }

    async fn connect_with(
        &self,
        certificate: Option<(CertificateDer<'static>, KeyPair)>,
    ) -> Result<Clients, tonic::transport::Error> {
        use tokio_rustls::rustls::pki_types::pem::PemObject as _;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let mut config = match certificate {
            Some((certificate, key)) => {
                let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
                config.with_client_auth_cert(vec![certificate], key).unwrap()
            }
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        let (connector, address) = (TlsConnector::from(Arc::new(config)), self.address.clone());
        let connector = tower::service_fn(move |_: Uri| {
            let (connector, address) = (connector.clone(), address.clone());
            async move {
                let stream = TcpStream::connect(address).await?;
                Ok::<_, std::io::Error>(TokioIo::new(connector.connect("server".try_into().unwrap(), stream).await?))
            }
        });
        Endpoint::from_static("http://server").connect_with_connector(connector).await.map(Clients::over)
    }
}

fn for_certificate(name: &str, role: Role, scope: Scope, certificate: &str) -> NewToken {
    NewToken { certificate: Some(certificate.parse().unwrap()), ..new(name, role, scope, None) }
}

/// A certificate has the rights of its token, with the same answers: every method, by every role, for its own workspace and others.
#[tokio::test]
async fn a_certificate_has_the_rights_of_its_token() {
    let (store, registry) = store_with_workspaces().await;
    for role in Role::ALL {
        let scope = if role == Role::Operator { Scope::All } else { one("own") };
        let (token, secret) =
            registry.create(for_certificate(role.word(), role, scope, &format!("dns:{role}.Example"))).await.unwrap();
        assert!(secret.is_none() && token.certificate.is_some());
    }
    let server = Secure::over(store).await;
    for role in Role::ALL {
        let clients = server.connect(Some(vec![dns(&format!("{role}.example")), dns("other.example")])).await;
        for (path, roles) in ROWS {
            let method = Method::from_path(&format!("/aptix.v1.{path}")).unwrap();
            let own = call(&clients, method, "own", &[]).await;
            if !roles.contains(letter(role)) {
                assert_eq!(told(&own).0, Code::PermissionDenied, "{path} by {role}");
                continue;
            }
            let denied = [Code::PermissionDenied, Code::Unauthenticated];
            assert!(!denied.contains(&told(&own).0), "{path} by {role}: {own:?}");
            if role == Role::Operator || method.workspace().is_none() {
                continue;
            }
            let other = call(&clients, method, "other", &[]).await;
            let absent = call(&clients, method, "absent", &[]).await;
            assert_eq!((told(&other).0, told(&other)), (Code::PermissionDenied, told(&absent)), "{path} by {role}");
        }
    }
}

/// Whatever is wrong with a certificate is answered as what is wrong with a token is; a token decides alone where there is one.
#[tokio::test]
async fn certificates_and_tokens_are_not_mixed() {
    let (store, registry) = store_with_workspaces().await;
    let reader = make(&registry, new("reader", Role::Reader, one("own"), None)).await;
    let revoked = make(&registry, new("revoked", Role::Reader, one("own"), None)).await;
    registry.revoke("revoked".parse().unwrap()).await.unwrap();
    let asked = |name: &str, certificate: &str| for_certificate(name, Role::Orchestrator, one("own"), certificate);
    registry.create(asked("laptop", "dns:laptop.example")).await.unwrap();
    registry.create(asked("second", "uri:spiffe://example/second")).await.unwrap();
    registry.create(asked("gone", "email:gone@example.org")).await.unwrap();
    registry.revoke("gone".parse().unwrap()).await.unwrap();
    let server = Secure::over(store).await;
    let uri = |text: &str| SanType::URI(text.try_into().unwrap());
    let email = |text: &str| SanType::Rfc822Name(text.try_into().unwrap());
    let bare = server.connect(None).await;
    let unauthenticated = call(&bare, Method::ListBatches, "own", &[]).await;
    assert_eq!(told(&unauthenticated).0, Code::Unauthenticated);
    for names in [
        vec![],
        vec![dns("other.example")],
        // The kind of a name is part of it, and no name stands for several.
        vec![uri("laptop.example"), email("laptop.example"), dns("*.example")],
        vec![email("gone@example.org")],
        vec![dns("laptop.example"), uri("spiffe://example/second")],
    ] {
        let shown = format!("{names:?}");
        let clients = server.connect(Some(names)).await;
        assert_eq!(told(&call(&clients, Method::ListBatches, "own", &[]).await), told(&unauthenticated), "{shown}");
    }
    let laptop = server.connect(Some(vec![dns("LAPTOP.example"), dns("laptop.example")])).await;
    assert_eq!(told(&call(&laptop, Method::ListBatches, "own", &[]).await).0, Code::Ok);
    // A token is judged alone: its rights are neither those of the certificate, nor does the certificate mend it.
    assert_eq!(told(&call(&laptop, Method::SubmitBatch, "own", &bearer(&reader)).await).0, Code::PermissionDenied);
    assert_ne!(told(&call(&laptop, Method::SubmitBatch, "own", &[]).await).0, Code::PermissionDenied);
    let unknown = Secret::mint().unwrap().to_string();
    for useless in [bearer(&revoked), bearer(&unknown), vec!["Basic x".to_owned()], bearer("dns:laptop.example")] {
        assert_eq!(told(&call(&laptop, Method::ListBatches, "own", &useless).await), told(&unauthenticated));
    }
    // One of another authority is not accepted at all.
    let (stranger, _) = authority();
    let foreign = server.connect_with(Some(issue(&stranger, vec![dns("laptop.example")]))).await;
    if let Ok(clients) = foreign {
        let refused: Status = call(&clients, Method::ListBatches, "own", &[]).await.unwrap_err();
        assert_ne!(refused.code(), Code::PermissionDenied);
    }
}

/// The open streams of a certificate end with its token, and a revoked token gives its certificate to another one.
#[tokio::test]
async fn streams_end_with_the_token_of_their_certificate() {
    let (store, registry) = store_with_workspaces().await;
    let operator = make(&registry, new("operator", Role::Operator, Scope::All, None)).await;
    registry.create(for_certificate("first", Role::Reader, one("own"), "dns:laptop.example")).await.unwrap();
    let server = Secure::over(store).await;
    let mut clients = server.connect(Some(vec![dns("laptop.example")])).await;
    let watch = v1::WatchWorkspaceRequest { workspace_id: "own".to_owned(), ..v1::WatchWorkspaceRequest::default() };
    let mut stream = clients.workspaces.watch_workspace(watch).await.unwrap().into_inner();
    let create = |name: &str, certificate: &str| {
        let (name, certificate, workspace_id) = (name.to_owned(), certificate.to_owned(), "other".to_owned());
        let role = v1::Role::Reader.into();
        let request = v1::CreateTokenRequest { name, role, workspace_id, certificate, ..Default::default() };
        let (mut admin, request) = (admin(&clients), with(&operator, request));
        async move { admin.create_token(request).await }
    };
    let used = create("second", "dns:laptop.example").await.unwrap_err();
    assert_eq!(used.code(), Code::AlreadyExists);
    for wrong in ["laptop.example", "dns:", "dns:*.example", "ip:127.0.0.1", "dns:a b", "dns:\u{e9}"] {
        assert_eq!(create("third", wrong).await.unwrap_err().code(), Code::InvalidArgument, "{wrong}");
    }
    let revoke = v1::RevokeTokenRequest { name: "first".to_owned() };
    admin(&clients).revoke_token(with(&operator, revoke)).await.unwrap();
    let ended = async {
        loop {
            if let Err(status) = next(&mut stream).await {
                return status;
            }
        }
    };
    assert_eq!(tokio::time::timeout(SOON, ended).await.unwrap().code(), Code::Unauthenticated);
    assert_eq!(told(&call(&clients, Method::ListBatches, "own", &[]).await).0, Code::Unauthenticated);
    let made = create("second", "dns:laptop.example").await.unwrap().into_inner();
    assert_eq!((made.secret.as_str(), made.token.unwrap().certificate.as_str()), ("", "dns:laptop.example"));
    assert_eq!(told(&call(&clients, Method::ListBatches, "other", &[]).await).0, Code::Ok);
    assert_eq!(told(&call(&clients, Method::ListBatches, "own", &[]).await).0, Code::PermissionDenied);
}

durable! {
    tokens_for_certificates_outlive_the_process,
}

/// A token for a certificate outlives the process. Of two for one certificate that which has not expired counts.
async fn tokens_for_certificates_outlive_the_process(place: Place) {
    let store = place.open().await;
    let registry = Registry::load(Arc::clone(&store)).await.unwrap();
    let soon = UnixMillis(mint::now().0 + 1000);
    let name = "dns:laptop.example";
    let brief = NewToken { expires: Some(soon), ..for_certificate("z", Role::Reader, Scope::All, name) };
    registry.create(brief).await.unwrap();
    until(async || (mint::now() > soon).then_some(())).await;
    let (made, _) = registry.create(for_certificate("a", Role::Agent, Scope::All, name)).await.unwrap();
    drop(registry);
    store.close().await.unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(store.tokens().await.unwrap().readable[0].token, made);
    let registry = Registry::load(store).await.unwrap();
    let names = [name.parse().unwrap()];
    let found = registry.authenticate((aptix_server::caller::Caller::Local, &names), &Default::default()).unwrap();
    assert_eq!(found.name().map(ToString::to_string).as_deref(), Some("a"));
}
