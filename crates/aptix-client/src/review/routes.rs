//! What the page asks for, and what it is answered.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;

use super::board::{Board, NotTaken, Question, Verdict};
use super::door::{Closed, Door};
use super::past::Past;
use super::refusal::Refusal;
use super::view::{self, BoardView, WaitingView};

const PAGE: &str = include_str!("page/index.html");
const SCRIPT: &str = include_str!("page/page.js");
const STYLE: &str = include_str!("page/page.css");

/// Bytes of what a page sends.
const BODY: usize = 1 << 20;
/// How long the page waits for something new before it asks again.
const NEWS: Duration = Duration::from_secs(25);

/// Nothing is loaded from elsewhere, no other page frames this one, and no script runs but ours.
const ALLOWED: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                       form-action 'none'; frame-ancestors 'none'";

/// What all answers are made of.
pub(super) struct Site {
    pub(super) board: Arc<Board>,
    pub(super) door: Arc<Door>,
    pub(super) past: Arc<Past>,
}

type Shared = State<Arc<Site>>;

pub(super) fn routes(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/page.js", get(|| async { file("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/page.css", get(|| async { file("text/css; charset=utf-8", STYLE) }))
        .route("/api/board", get(board))
        .route("/api/board/after/{version}", get(board_after))
        .route("/api/waiting/{number}/files/{file}", get(lines))
        .route("/api/waiting/{number}/files/{file}/lines/{line}/{from}", get(piece))
        .route("/api/waiting/{number}/files/{file}/base/{first}/{count}", get(base_lines))
        .route("/api/waiting/{number}/files/{file}/base/lines/{line}/{from}", get(base_piece))
        .route("/api/waiting/{number}", post(answer))
        .route("/api/past", get(past))
        .route("/api/past/{id}", get(past_batch))
        .route("/api/past/{id}/files/{file}", get(past_lines))
        .route("/api/past/{id}/files/{file}/lines/{line}/{from}", get(past_piece))
        .route("/api/past/{id}/undo", post(undo))
        .layer(DefaultBodyLimit::max(BODY))
        .layer(from_fn_with_state(Arc::clone(&site), guard))
        .with_state(site)
}

/// Lets in who may, and says to the browser what this page does not do.
async fn guard(State(site): Shared, request: Request, next: Next) -> Response {
    let brings_link = token(&request).is_some();
    let mut response = match site.door.admit(request.method(), request.headers(), brings_link) {
        Ok(()) => next.run(request).await,
        Err(closed) => {
            let status = match closed {
                Closed::NoCookie => StatusCode::UNAUTHORIZED,
                Closed::OtherHost | Closed::OtherSite => StatusCode::FORBIDDEN,
            };
            Refusal(status, closed.to_string()).into_response()
        }
    };
    let stated = [
        (HeaderName::from_static("content-security-policy"), ALLOWED),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ];
    response.headers_mut().extend(stated.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

/// The secret of a link, if a request is for one.
fn token(request: &Request) -> Option<&str> {
    (request.uri().path() == "/").then_some(request.uri().query()?)?.strip_prefix("token=")
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind)], text).into_response()
}

/// The page; for a link, a cookie first.
async fn page(State(site): Shared, request: Request) -> Response {
    let Some(token) = token(&request) else { return file("text/html; charset=utf-8", PAGE) };
    let Some(cookie) = site.door.exchange(token) else {
        let why = "this link was used before, or is no longer the newest: `aptix review` prints the one that is good";
        return Refusal(StatusCode::FORBIDDEN, why.to_owned()).into_response();
    };
    // The others learn that there is one more.
    site.board.touch();
    let door = Arc::clone(&site.door);
    tokio::task::spawn_blocking(move || door.announce("the review page was opened; to open it in another browser"));
    (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie.as_str()), (LOCATION, "/")], Body::empty()).into_response()
}

async fn board(State(site): Shared) -> Json<BoardView> {
    let (version, waiting, ended) = site.board.look();
    let waiting = waiting.iter().map(|(number, question)| WaitingView::of(*number, question)).collect();
    Json(BoardView { version, browsers: site.door.browsers(), waiting, ended })
}

/// The board as soon as it differs from this version, or after a while as it is.
async fn board_after(State(site): Shared, Path(version): Path<u64>) -> Json<BoardView> {
    let _ = tokio::time::timeout(NEWS, site.board.changed_since(version)).await;
    board(State(site)).await
}

fn waiting(site: &Site, number: u64) -> Result<Question, Refusal> {
    site.board.question(number).ok_or_else(|| NotTaken::Gone.into())
}

fn absent() -> Refusal {
    Refusal(StatusCode::NOT_FOUND, "there is no such line".to_owned())
}

async fn lines(State(site): Shared, Path((number, file)): Path<(u64, usize)>) -> Result<Response, Refusal> {
    let lines = view::lines(&waiting(&site, number)?.shown, file).ok_or_else(absent)?;
    Ok(Json(lines).into_response())
}

type LinePath<T> = Path<(T, usize, usize, usize)>;

async fn piece(State(site): Shared, Path((number, file, line, from)): LinePath<u64>) -> Result<Response, Refusal> {
    let piece = view::piece(&waiting(&site, number)?.shown, file, line, from).ok_or_else(absent)?;
    Ok(Json(piece).into_response())
}

/// Lines that the change leaves as they are.
async fn base_lines(
    State(site): Shared,
    Path((number, file, first, count)): LinePath<u64>,
) -> Result<Response, Refusal> {
    let lines = view::base_lines(&waiting(&site, number)?.shown, file, first, count).ok_or_else(absent)?;
    Ok(Json(lines).into_response())
}

async fn base_piece(State(site): Shared, Path((number, file, line, from)): LinePath<u64>) -> Result<Response, Refusal> {
    let piece = view::base_piece(&waiting(&site, number)?.shown, file, line, from).ok_or_else(absent)?;
    Ok(Json(piece).into_response())
}

/// What a person decided.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AnswerBody {
    /// The digest of what they saw.
    digest: String,
    approve: bool,
    #[serde(default)]
    reason: String,
    /// Of a batch that is applied file by file: the files that are not right.
    #[serde(default)]
    refused: Vec<RefusedFile>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RefusedFile {
    file: usize,
    #[serde(default)]
    reason: String,
}

async fn answer(State(site): Shared, Path(number): Path<u64>, body: Bytes) -> Result<Response, Refusal> {
    let invalid = |why: String| Refusal(StatusCode::BAD_REQUEST, format!("the answer cannot be read: {why}"));
    let body: AnswerBody = serde_json::from_slice(&body).map_err(|error| invalid(error.to_string()))?;
    let subject = body.digest.parse().map_err(|_| invalid("digest is no SHA-256".to_owned()))?;
    let verdict = match (body.approve, body.refused) {
        (true, refused) => Verdict::Approve(refused.into_iter().map(|file| (file.file, file.reason)).collect()),
        (false, refused) if refused.is_empty() => Verdict::Reject(body.reason),
        (false, _) => return Err(invalid("a batch that is refused whole names no files".to_owned())),
    };
    let ended = site.board.answer(number, subject, verdict).await?;
    Ok(Json(ended).into_response())
}

async fn past(State(site): Shared) -> Result<Response, Refusal> {
    Ok(Json(site.past.list().await?).into_response())
}

async fn past_batch(State(site): Shared, Path(id): Path<String>) -> Result<Response, Refusal> {
    let shown = site.past.shown(&id).await?;
    Ok(Json(view::ChangeView::of(&format!("Batch {id}"), &shown)).into_response())
}

async fn past_lines(State(site): Shared, Path((id, file)): Path<(String, usize)>) -> Result<Response, Refusal> {
    let shown = site.past.shown(&id).await?;
    Ok(Json(view::lines(&shown, file).ok_or_else(absent)?).into_response())
}

async fn past_piece(State(site): Shared, Path((id, file, line, from)): LinePath<String>) -> Result<Response, Refusal> {
    let shown = site.past.shown(&id).await?;
    Ok(Json(view::piece(&shown, file, line, from).ok_or_else(absent)?).into_response())
}

/// Asks, as for any change, whether a batch is to be taken back.
async fn undo(State(site): Shared, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    site.past.take_back(id).await?;
    Ok(StatusCode::ACCEPTED)
}
