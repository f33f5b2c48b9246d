//! Handshakes of TLS that fail: each is counted by its cause, and logged, so many a second at most; and its client can read why.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use tokio_rustls::rustls::Error;
use tokio_util::task::TaskTracker;

use crate::caller::Caller;
use crate::descriptors::PARTINGS;
use crate::log_limit::LogLimit;
use crate::metrics::Metric;

/// Why a handshake failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// What came is no TLS, or is malformed.
    NotTls,
    /// The client offers no version, cipher suite or protocol of ours.
    Incompatible,
    /// The client's certificate is not of an authority in `client_ca`, has expired, or is otherwise of no use.
    ClientCertificate,
    /// The client ended it with an alert: most often it does not trust the server's certificate.
    RefusedByClient,
    /// The connection ended.
    Disconnected,
    /// It did not end within its time.
    TimedOut,
    /// There were too many, and it was one of the slow ones.
    GaveWay,
    /// Anything else.
    Other,
}

impl Cause {
    /// The cause behind an error of the handshake.
    pub(super) fn of(error: &io::Error) -> Self {
        let tls = error.get_ref().and_then(|source| source.downcast_ref::<Error>());
        match tls {
            Some(Error::InvalidMessage(_)) => Self::NotTls,
            Some(Error::PeerIncompatible(_) | Error::NoApplicationProtocol) => Self::Incompatible,
            Some(Error::InvalidCertificate(_) | Error::NoCertificatesPresented) => Self::ClientCertificate,
            Some(Error::AlertReceived(_)) => Self::RefusedByClient,
            Some(_) => Self::Other,
            None => Self::Disconnected,
        }
    }

    /// Its word in metrics and in the log.
    const fn word(self) -> &'static str {
        match self {
            Self::NotTls => "not_tls",
            Self::Incompatible => "incompatible",
            Self::ClientCertificate => "client_certificate",
            Self::RefusedByClient => "refused_by_client",
            Self::Disconnected => "disconnected",
            Self::TimedOut => "timed_out",
            Self::GaveWay => "gave_way",
            Self::Other => "other",
        }
    }
}

/// How long the client of a failed handshake may read why, and how much it may send meanwhile.
const PARTING_TIME: Duration = Duration::from_secs(1);
const PARTING_BYTES: u64 = 64 << 10;

/// Counts, logs and ends failed handshakes.
#[derive(Debug, Default)]
pub(super) struct FailedHandshakes {
    log: LogLimit,
    partings: TaskTracker,
}

impl FailedHandshakes {
    /// Counts a failure. The log has it as well, unless the client only looked whether the server listens, as load balancers do.
    pub(super) fn count(&self, caller: Caller, cause: Cause, error: &io::Error) {
        Metric::FailedHandshakes.add(&[cause.word()], 1.0);
        if cause == Cause::Disconnected {
            return;
        }
        let Some(unlogged) = self.log.count() else { return };
        tracing::warn!(?caller, cause = cause.word(), %error, unlogged, "a TLS handshake failed");
    }

    /// Ends a connection so that its client can read why. One that is closed while there is something in it to read is reset, and the
    /// client loses what it was sent. Where there are too many it is closed at once.
    pub(super) fn part(&self, mut connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        if self.partings.len() >= PARTINGS {
            return;
        }
        self.partings.spawn(async move {
            let ended = async {
                connection.shutdown().await?;
                tokio::io::copy(&mut connection.take(PARTING_BYTES), &mut tokio::io::sink()).await
            };
            // Nobody is left to be told of a failure.
            let _ = timeout(PARTING_TIME, ended).await;
        });
    }
}
