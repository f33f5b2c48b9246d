//! Who may call what: every method of the protocol, by every role, for its own workspace and for others, and without a token that
//! is of use.

use std::collections::BTreeSet;
use std::sync::Arc;

use aptix_model::id::TokenName;
use aptix_model::record::UnixMillis;
use aptix_model::token::{Ended, Ending, Role, Scope, Token};
use aptix_model::wire::FILE_DESCRIPTOR_SET;
use aptix_model::wire::method::Method;
use aptix_model::wire::v1;
use aptix_model::wire::v1::admin_service_client::AdminServiceClient;
use aptix_server::identity::{NewToken, Registry};
use aptix_server::mint;
use aptix_server::options::Options;
use aptix_server::store::Store;
use aptix_server::store::memory::MemoryStore;
use prost::Message;
use prost_types::FileDescriptorSet;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

use crate::place::{Place, durable};
use crate::server::{Clients, SOON, Server, hello, next, refusal, submit};
use crate::until::until;

/// What each role may call: O an orchestrator, A an agent, V a reviewer, R a reader, P an operator.
pub(crate) const ROWS: &[(&str, &str)] = &[
    // The owner of the data directory alone, through its socket.
    ("AdminService/Backup", ""),
    ("AdminService/CreateToken", "P"),
    ("AdminService/CreateWorkspace", "P"),
    ("AdminService/DeleteWorkspace", "P"),
    ("AdminService/GetServerStatus", "P"),
    ("AdminService/ListTokens", "P"),
    ("AdminService/RetainWorkspace", "P"),
    ("AdminService/RevokeToken", "P"),
    ("AgentService/ReportBatch", "A"),
    ("AgentService/ReportLocalBatch", "A"),
    ("AgentService/Serve", "A"),
    ("BatchService/ApplyPrepared", "O"),
    ("BatchService/ApproveBatch", "V"),
    ("BatchService/CancelBatch", "OV"),
    ("BatchService/GetBatch", "OAVR"),
    ("BatchService/GetChange", "OVR"),
    ("BatchService/ListBatches", "OVR"),
    ("BatchService/PrepareBatch", "O"),
    ("BatchService/RejectBatch", "V"),
    ("BatchService/RevertBatch", "OV"),
    ("BatchService/SubmitBatch", "O"),
    ("BatchService/WatchBatch", "OVR"),
    ("FileService/DownloadBlob", "OAVR"),
    ("FileService/FindMissingBlobs", "OA"),
    ("FileService/ListFiles", "OAVR"),
    ("FileService/ReadFile", "OVR"),
    ("FileService/ReadFiles", "OVR"),
    ("FileService/SearchFiles", "OVR"),
    ("FileService/StatFiles", "OAVR"),
    ("FileService/StatUpload", "OA"),
    ("FileService/UploadBlob", "OA"),
    // The other servers on the store alone.
    ("FleetService/AskAgent", ""),
    ("SessionService/GetSession", "OVR"),
    ("SessionService/SetSessionMode", "OV"),
    ("ToolService/CallTool", "O"),
    ("ToolService/GetGuidance", "OVR"),
    ("ToolService/ListTools", "OVR"),
    ("WorkspaceService/GetWorkspace", "OAVRP"),
    ("WorkspaceService/ListWorkspaces", "OAVRP"),
    ("WorkspaceService/WatchWorkspace", "OVR"),
];

pub(crate) const fn letter(role: Role) -> char {
    match role {
        Role::Orchestrator => 'O',
        Role::Agent => 'A',
        Role::Reviewer => 'V',
        Role::Reader => 'R',
        Role::Operator => 'P',
    }
}

pub(crate) fn new(name: &str, role: Role, scope: Scope, expires: Option<UnixMillis>) -> NewToken {
    NewToken { name: name.parse().unwrap(), role, scope, expires, certificate: None }
}

pub(crate) fn one(workspace: &str) -> Scope {
    Scope::One(workspace.parse().unwrap())
}

/// Makes a token before the server starts.
pub(crate) async fn make(registry: &Arc<Registry>, asked: NewToken) -> String {
    registry.create(asked).await.unwrap().1.unwrap().to_string()
}

/// A store with the workspaces `own` and `other`.
pub(crate) async fn store_with_workspaces() -> (Arc<dyn Store>, Arc<Registry>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let registry = Registry::load(Arc::clone(&store)).await.unwrap();
    for workspace in ["own", "other"] {
        assert!(registry.create_workspace(workspace.parse().unwrap()).await.unwrap());
        assert!(!registry.create_workspace(workspace.parse().unwrap()).await.unwrap());
    }
    (store, registry)
}

pub(crate) fn bearer(token: &str) -> Vec<String> {
    vec![format!("Bearer {token}")]
}

/// Calls a method with a message that names the workspace and nothing else. Answers how the call begins.
pub(crate) async fn call(
    clients: &Clients,
    method: Method,
    workspace: &str,
    authorizations: &[String],
) -> Result<(), Status> {
    // The bytes of a message whose field 1 is the name, or has in it such a message.
    let name = workspace.as_bytes().to_vec();
    let message = if method.workspace() == Some(&[1, 1]) { name.encode_to_vec() } else { name };
    let mut request = Request::new(tokio_stream::iter([message]));
    authorize(request.metadata_mut(), authorizations);
    let mut client = tonic::client::Grpc::new(clients.channel.clone());
    client.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::<Vec<u8>, ()>::default();
    let path = PathAndQuery::from_static(method.path());
    let answered = tokio::time::timeout(SOON, client.streaming(request, path, codec)).await.expect("an answer");
    let _: Streaming<()> = answered?.into_inner();
    Ok(())
}

pub(crate) fn authorize(headers: &mut MetadataMap, authorizations: &[String]) {
    for value in authorizations {
        headers.append("authorization", value.parse::<AsciiMetadataValue>().unwrap());
    }
}

pub(crate) fn told(answer: &Result<(), Status>) -> (Code, &str, &[u8]) {
    answer.as_ref().err().map_or((Code::Ok, "", &[]), |status| (status.code(), status.message(), status.details()))
}

/// Every method of the protocol has a row here, and no other.
#[test]
fn every_method_has_a_row() {
    let descriptors = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let files = descriptors.file.iter().filter(|file| file.package() == "aptix.v1");
    let services = files.flat_map(|file| &file.service);
    let described: BTreeSet<_> = services
        .flat_map(|service| service.method.iter().map(move |method| format!("{}/{}", service.name(), method.name())))
        .collect();
    let rows: BTreeSet<_> = ROWS.iter().map(|(method, _)| (*method).to_owned()).collect();
    let methods: BTreeSet<_> =
        Method::ALL.iter().map(|method| method.path().strip_prefix("/aptix.v1.").unwrap().to_owned()).collect();
    assert_eq!(rows, described);
    assert_eq!(methods, described);
    assert_eq!(rows.len(), ROWS.len());
}

#[tokio::test]
async fn a_role_calls_its_methods_for_its_workspace_and_nothing_else() {
    let (store, registry) = store_with_workspaces().await;
    let mut tokens = Vec::new();
    for role in Role::ALL {
        let scope = if role == Role::Operator { Scope::All } else { one("own") };
        tokens.push((role, bearer(&make(&registry, new(role.word(), role, scope, None)).await)));
    }
    let server = Server::over(store, Options::default());
    let clients = server.connect().await;
    for (path, roles) in ROWS {
        let method = Method::from_path(&format!("/aptix.v1.{path}")).unwrap();
        for (role, token) in &tokens {
            // The tokens end with their workspace.
            let own = if method == Method::DeleteWorkspace { "left" } else { "own" };
            let own = call(&clients, method, own, token).await;
            if !roles.contains(letter(*role)) {
                assert_eq!(told(&own).0, Code::PermissionDenied, "{path} by {role}");
                continue;
            }
            let denied = [Code::PermissionDenied, Code::Unauthenticated];
            assert!(!denied.contains(&told(&own).0), "{path} by {role}: {own:?}");
            if *role == Role::Operator || method.workspace().is_none() {
                continue;
            }
            let other = call(&clients, method, "other", token).await;
            assert_eq!(told(&other).0, Code::PermissionDenied, "{path} by {role}");
            assert_eq!(refusal(other.as_ref().unwrap_err()).1, "PERMISSION_DENIED");
            let absent = call(&clients, method, "absent", token).await;
            assert_eq!(told(&other), told(&absent), "{path} by {role}");
        }
    }
    // What is no method of the protocol is told to who has a token.
    let listed = call(&clients, Method::ListTokens, "", &tokens[0].1).await;
    assert_eq!(told(&listed).0, Code::PermissionDenied);
}

#[tokio::test]
async fn whatever_is_wrong_with_a_token_is_answered_alike() {
    let (store, registry) = store_with_workspaces().await;
    let good = make(&registry, new("good", Role::Orchestrator, Scope::All, None)).await;
    let revoked = make(&registry, new("revoked", Role::Orchestrator, Scope::All, None)).await;
    registry.revoke("revoked".parse().unwrap()).await.unwrap();
    let soon = UnixMillis(mint::now().0 + 1000);
    let expired = make(&registry, new("expired", Role::Orchestrator, Scope::All, Some(soon))).await;
    until(async || (mint::now() > soon).then_some(())).await;
    let server = Server::over(store, Options::default());
    let clients = server.connect().await;
    let unknown = aptix_server::identity::Secret::mint().unwrap().to_string();
    let cut = good[..good.len() - 1].to_owned();
    let useless = [
        Vec::new(),
        bearer(&revoked),
        bearer(&expired),
        bearer(&unknown),
        bearer(&cut),
        bearer(""),
        vec![format!("Basic {good}")],
        vec![good.clone()],
        vec![format!("Bearer {good}"), format!("Bearer {good}")],
        vec![format!("Bearer {good}"), format!("Bearer {unknown}")],
    ];
    for method in Method::ALL {
        let bare = call(&clients, *method, "own", &[]).await;
        assert_eq!(told(&bare).0, Code::Unauthenticated, "{}", method.path());
        for authorizations in &useless {
            let answer = call(&clients, *method, "own", authorizations).await;
            assert_eq!(told(&answer), told(&bare), "{} with {authorizations:?}", method.path());
        }
    }
    let status = call(&clients, Method::GetBatch, "own", &[]).await.unwrap_err();
    assert_eq!(refusal(&status).1, "UNAUTHENTICATED");
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let answer = call(&clients, Method::ListWorkspaces, "", &[format!("{scheme} {good}")]).await;
        assert_eq!(told(&answer).0, Code::Ok, "{scheme}");
    }
}

#[tokio::test]
async fn an_operator_makes_and_ends_tokens() {
    let (store, registry) = store_with_workspaces().await;
    let operator = make(&registry, new("operator", Role::Operator, Scope::All, None)).await;
    let server = Server::over(store, Options::default());
    let clients = server.connect().await;
    let mut admin = admin(&clients);
    let request = |name: &str, role: v1::Role, workspace: &str| {
        let (name, workspace_id) = (name.to_owned(), workspace.to_owned());
        let request = v1::CreateTokenRequest { name, role: role.into(), workspace_id, ..Default::default() };
        with(&operator, request)
    };
    let made = admin.create_token(request("reader", v1::Role::Reader, "own")).await.unwrap().into_inner();
    assert_eq!(told(&call(&clients, Method::GetWorkspace, "own", &bearer(&made.secret)).await).0, Code::Ok);
    for (asked, code) in [
        (request("reader", v1::Role::Reader, "own"), Code::AlreadyExists),
        (request("a", v1::Role::Reader, "absent"), Code::NotFound),
        (request("a", v1::Role::Operator, "own"), Code::InvalidArgument),
        (request("a b", v1::Role::Reader, "own"), Code::InvalidArgument),
        (request("a", v1::Role::Unspecified, "own"), Code::InvalidArgument),
        (request("a", v1::Role::Reader, ""), Code::InvalidArgument),
        (
            with(
                &operator,
                v1::CreateTokenRequest {
                    name: "a".to_owned(),
                    role: v1::Role::Reader.into(),
                    workspace_id: "own".to_owned(),
                    expire_time: Some(UnixMillis(1).into()),
                    ..Default::default()
                },
            ),
            Code::InvalidArgument,
        ),
    ] {
        assert_eq!(admin.create_token(asked).await.unwrap_err().code(), code);
    }
    let refused = admin.create_token(request("a", v1::Role::Operator, "own")).await.unwrap_err();
    let hint = "name all workspaces with `*` (`--workspace '*'`), or choose another role";
    assert!(refused.message().contains(hint), "{refused:?}");
    // When every token has ended, calls need one as before.
    for name in ["reader", "operator"] {
        let revoke = with(&operator, v1::RevokeTokenRequest { name: name.to_owned() });
        let token = admin.revoke_token(revoke).await.unwrap().into_inner().token.unwrap();
        assert!(token.end_time.is_some() && !token.has_expired);
    }
    assert_eq!(told(&call(&clients, Method::ListWorkspaces, "", &[]).await).0, Code::Unauthenticated);
}

pub(crate) fn admin(clients: &Clients) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(clients.channel.clone())
}

pub(crate) fn with<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    authorize(request.metadata_mut(), &bearer(token));
    request
}

/// Open streams end with the token, whether it is revoked or expires; those of another token go on.
#[tokio::test]
async fn streams_end_with_their_token() {
    let (store, registry) = store_with_workspaces().await;
    let operator = make(&registry, new("operator", Role::Operator, Scope::All, None)).await;
    let reader = make(&registry, new("reader", Role::Reader, one("own"), None)).await;
    let expires = UnixMillis(mint::now().0 + 5000);
    let brief = make(&registry, new("brief", Role::Reader, one("own"), Some(expires))).await;
    let other = make(&registry, new("other", Role::Reader, one("own"), None)).await;
    let server = Server::over(store, Options::default());
    let clients = server.connect().await;
    let watch = || v1::WatchWorkspaceRequest { workspace_id: "own".to_owned(), ..v1::WatchWorkspaceRequest::default() };
    let mut streams = Vec::new();
    for token in [&reader, &brief, &other] {
        let stream = clients.workspaces.clone().watch_workspace(with(token, watch())).await.unwrap();
        streams.push(stream.into_inner());
    }
    let revoke = v1::RevokeTokenRequest { name: "reader".to_owned() };
    admin(&clients).revoke_token(with(&operator, revoke)).await.unwrap();
    for stream in &mut streams[..2] {
        let ended = async {
            loop {
                if let Err(status) = next(stream).await {
                    return status;
                }
            }
        };
        let status = tokio::time::timeout(SOON, ended).await.unwrap();
        assert_eq!((status.code(), refusal(&status).1.as_str()), (Code::Unauthenticated, "UNAUTHENTICATED"));
    }
    assert!(mint::now() >= expires);
    let tokens =
        admin(&clients).list_tokens(with(&operator, v1::ListTokensRequest {})).await.unwrap().into_inner().tokens;
    let ended: Vec<_> = tokens.iter().filter(|token| token.end_time.is_some()).collect();
    assert_eq!(
        ended.iter().map(|token| (token.name.as_str(), token.has_expired)).collect::<Vec<_>>(),
        [("brief", true), ("reader", false)]
    );
    assert_eq!(told(&call(&clients, Method::GetWorkspace, "own", &bearer(&other)).await).0, Code::Ok);
}

/// An agent whose token is revoked holds the workspace no longer, and its connection ends.
#[tokio::test]
async fn an_agent_is_gone_with_its_token() {
    let (store, registry) = store_with_workspaces().await;
    let first = make(&registry, new("first", Role::Agent, one("own"), None)).await;
    let second = make(&registry, new("second", Role::Agent, one("own"), None)).await;
    let operator = make(&registry, new("operator", Role::Operator, Scope::All, None)).await;
    let server = Server::over(store, Options::default());
    let clients = server.connect().await;
    let serve = async |token: &str, agent: &str| {
        let token = token.parse::<AsciiMetadataValue>().unwrap();
        let set = move |mut request: Request<()>| {
            request.metadata_mut().insert("authorization", token.clone());
            Ok(request)
        };
        let mut client = v1::agent_service_client::AgentServiceClient::with_interceptor(clients.channel.clone(), set);
        let (sender, requests) = tokio::sync::mpsc::channel(8);
        let message = Some(v1::serve_request::Message::Hello(hello("own", agent)));
        sender.send(v1::ServeRequest { message }).await.unwrap();
        let answers = client.serve(tokio_stream::wrappers::ReceiverStream::new(requests)).await?;
        Ok::<_, Status>((sender, answers.into_inner()))
    };
    let (_sender, mut stream) = serve(&format!("Bearer {first}"), "first").await.unwrap();
    next(&mut stream).await.unwrap();
    admin(&clients).revoke_token(with(&operator, v1::RevokeTokenRequest { name: "first".to_owned() })).await.unwrap();
    let ended = async { while next(&mut stream).await.is_ok() {} };
    tokio::time::timeout(SOON, ended).await.unwrap();
    let taken_over = async {
        while let Err(status) = serve(&format!("Bearer {second}"), "second").await {
            assert_eq!(status.code(), Code::Unavailable, "{status}");
        }
    };
    tokio::time::timeout(SOON, taken_over).await.unwrap();
}

/// Of all workspaces a token for one shows its own.
#[tokio::test]
async fn a_list_of_workspaces_has_those_of_the_token() {
    let (store, registry) = store_with_workspaces().await;
    let all = make(&registry, new("all", Role::Reader, Scope::All, None)).await;
    let own = make(&registry, new("own", Role::Reader, one("own"), None)).await;
    let server = Server::over(store, Options::default());
    let mut clients = server.connect().await;
    for (token, expected) in [(&all, vec!["other", "own"]), (&own, vec!["own"])] {
        let mut found = Vec::new();
        let mut page_token = String::new();
        loop {
            let request = with(token, v1::ListWorkspacesRequest { page_size: 1, page_token });
            let page = clients.workspaces.list_workspaces(request).await.unwrap().into_inner();
            found.extend(page.workspaces.into_iter().map(|workspace| workspace.workspace_id));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        assert_eq!(found, expected);
    }
}

/// A token for all workspaces creates one by its first batch, as every caller does while there are no tokens.
#[tokio::test]
async fn a_token_for_all_workspaces_creates_them() {
    let (store, registry) = store_with_workspaces().await;
    let token = make(&registry, new("all", Role::Orchestrator, Scope::All, None)).await;
    let server = Server::over(store, Options::default());
    let mut clients = server.connect().await;
    let request = with(&token, submit("new", "r", vec![crate::server::create_text("a", "b\n")]));
    clients.batches.submit_batch(request).await.unwrap();
    assert_eq!(told(&call(&clients, Method::GetWorkspace, "new", &bearer(&token)).await).0, Code::Ok);
}

async fn tokens(store: &Arc<dyn Store>) -> Vec<Token> {
    store.tokens().await.unwrap().readable.into_iter().map(|kept| kept.token).collect()
}

durable! {
    tokens_outlive_the_process,
}

/// Tokens and their ends outlive the process; a damaged record of one is of no use and opens nothing.
async fn tokens_outlive_the_process(place: Place) {
    let name: TokenName = "kept".parse().unwrap();
    let store = place.open().await;
    let registry = Registry::load(Arc::clone(&store)).await.unwrap();
    registry.create_workspace("own".parse().unwrap()).await.unwrap();
    let (made, _) = registry.create(new("kept", Role::Agent, one("own"), Some(UnixMillis(u64::MAX)))).await.unwrap();
    drop(registry);
    store.close().await.unwrap();
    drop(store);

    let store = place.open().await;
    assert_eq!(tokens(&store).await, std::slice::from_ref(&made));
    let ended = Ended { at: UnixMillis(7), how: Ending::Revoked };
    let first = store.end_token(name.clone(), ended).await.unwrap().unwrap();
    assert_eq!(first.ended, Some(ended));
    // The first end stays.
    let again = store.end_token(name, Ended { at: UnixMillis(8), how: Ending::Expired }).await.unwrap().unwrap();
    assert_eq!(again, first);
    store.close().await.unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(tokens(&store).await, [first]);
    assert!(Registry::load(store).await.unwrap().is_closed());
}
