//! `aptix login`: keeps a token for a server.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::sync::Arc;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use tokio::signal::unix::{SignalKind, signal};

use crate::connection::{CallError, Credentials, Server, ServerUrl, Token, Trust, check_token};
use crate::workspace::fs::terminal::Hidden;

use super::exit::Exit;
use super::output;
use super::token::{LIMIT, TokenArgs};

/// Where the token comes from that is to be kept.
const TOKEN_FILE: &str = "A file with the token for the server; otherwise the one in $APTIX_TOKEN, or a line of stdin";

#[derive(clap::Args, Debug)]
#[command(mut_arg("token_file", |argument| argument.help(TOKEN_FILE)))]
pub(super) struct Args {
    /// Where the server listens: https://HOST:PORT, or http://HOST:PORT without TLS
    #[arg(long, value_name = "URL", env = "APTIX_SERVER")]
    server: ServerUrl,
    #[command(flatten)]
    pub(super) token: TokenArgs,
}

/// Keeps the token that is given, in the file or the variable, or on stdin, once the server has accepted it.
pub(super) async fn run(args: Args) -> Result<Exit, CallError> {
    let refused = CallError::refused;
    let token = match args.token.given().transpose().map_err(refused)? {
        Some(token) => token,
        None => read().await.map_err(refused)?,
    };
    let trust = args.token.trust.trust();
    let server = Server { trust: trust.clone(), ..Server::new(args.server.clone(), Arc::new(New(token.clone()))) };
    check_token(&server).await?;
    // Without the certificate, which may be good for the call by itself.
    let trust = Trust { certificate: None, ..trust };
    if check_token(&Server { trust, ..Server::open(args.server.clone()) }).await.is_ok() {
        output::say("the server needs no token yet, so that it did not look at this one");
    }
    let path = args.token.keep(&args.server, &token).map_err(refused)?;
    output::say(&format!("the token for {} is kept in {}", args.server, path.display()));
    Ok(Exit::Done)
}

/// Reads a line from stdin; on a terminal, without showing it. However that ends, the terminal shows again what is typed.
async fn read() -> Result<Token, Failure> {
    let unread = |why: String| {
        Failure::new(Reason::InvalidRequest, format!("no token was read from stdin: {why}"))
            .hint("type or pipe in one line, or name a file with --token-file")
    };
    // Without it the signal would end the process before the terminal is as it was; Ctrl-C drops this work.
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| unread(error.to_string()))?;
    let hidden = std::io::stdin().is_terminal().then(|| {
        // Nothing can be done about a closed terminal.
        let _ = write!(std::io::stderr(), "token: ");
        Hidden::input()
    });
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().take(LIMIT).read_line(&mut line).map(|_| line)
    });
    let line = tokio::select! {
        line = line => line,
        _ = terminate.recv() => return Err(Failure::new(Reason::Interrupted, "interrupted; no token was kept")),
    };
    if hidden.is_some() {
        let _ = writeln!(std::io::stderr());
    }
    let line = line.map_err(|error| unread(error.to_string()))?.map_err(|error| unread(error.to_string()))?;
    line.parse().map_err(|error| unread(format!("{error}")))
}

/// A token that is not kept yet.
#[derive(Debug)]
struct New(Token);

impl Credentials for New {
    fn token(&self) -> Result<Option<Token>, Failure> {
        Ok(Some(self.0.clone()))
    }
}
