//! Reads the configuration again on SIGHUP: all of what may change while the server runs takes effect, or nothing.

use std::convert::Infallible;

use aptix_server::config::{Effective, Faults, LogFilter, Sources};
use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::quota::QuotaRules;
use aptix_server::retention::RetentionRules;
use tokio::signal::unix::Signal;
use tokio::sync::watch;

use crate::service_manager::{ServiceManager, State};

/// Sets what is logged.
pub(crate) type SetLog = Box<dyn Fn(&LogFilter) + Send + Sync>;

/// What a new configuration changes.
pub(crate) struct Reload {
    /// Where the configuration is read from.
    pub(crate) sources: Sources,
    /// The configuration that the server was started with.
    pub(crate) started: Effective,
    /// Which batches a person has to approve.
    pub(crate) approvals: watch::Sender<Approvals>,
    /// What tokens and workspaces may use.
    pub(crate) quotas: watch::Sender<QuotaRules>,
    /// What workspaces keep.
    pub(crate) retention: watch::Sender<RetentionRules>,
    /// What is logged.
    pub(crate) set_log: SetLog,
}

impl Reload {
    /// Reads it at each signal.
    pub(crate) async fn run(&self, mut hangup: Signal, manager: &ServiceManager) -> Infallible {
        loop {
            if hangup.recv().await.is_none() {
                return std::future::pending().await;
            }
            manager.report(State::Reloading);
            let sources = self.sources.clone();
            match tokio::task::spawn_blocking(move || sources.read()).await {
                Ok(read) => self.take(read),
                Err(error) => tracing::error!(%error, "the configuration could not be read again and stays as it is"),
            }
            manager.report(State::Ready);
        }
    }

    fn take(&self, read: Result<Effective, Faults>) {
        let effective = match read {
            Ok(effective) => effective,
            Err(faults) => {
                faults.iter().for_each(|fault| tracing::error!("{fault}"));
                tracing::error!("the configuration stays as it is: the new one has faults");
                return;
            }
        };
        for key in self.started.waiting_for_restart(&effective) {
            tracing::warn!(key, "a changed key takes effect at the next start");
        }
        self.approvals.send_replace(effective.config.approvals());
        self.quotas.send_replace(effective.config.quotas());
        self.retention.send_replace(effective.config.retention());
        (self.set_log)(&effective.config.log);
        tracing::info!("the configuration was read again");
    }
}
