//! What ends a statement or a transaction before its answer, and what callers hear of it.

use deadpool_postgres::PoolError;
use tokio_postgres::Error;
use tokio_postgres::error::DbError;

use crate::store::StoreError;

/// Why a statement or a transaction failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// The database takes no writes, or cannot be reached; it is tried again in the background.
    Unavailable(String),
    /// A lock was held by another transaction for too long.
    Locked,
    /// PostgreSQL has more to do than it does in time. It takes writes, and the call may be made again.
    Busy(String),
    /// PostgreSQL rolled the transaction back because it got in the way of another one: it may be tried again.
    Conflict(String),
    /// A row is not as this server last committed it, and the transaction was rolled back: it is carried out again by what it reads.
    Changed,
    /// Nothing that passes by itself.
    Failed(String),
    /// The store itself refuses.
    Refused(StoreError),
}

impl Fault {
    /// What a caller is answered.
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Unavailable(cause) => StoreError::ReadOnly { cause },
            Self::Locked => StoreError::Busy { cause: "another transaction holds a lock on the same rows".to_owned() },
            Self::Conflict(cause) | Self::Busy(cause) => StoreError::Busy { cause },
            Self::Changed => StoreError::Busy { cause: "another server changed the same rows".to_owned() },
            Self::Failed(cause) => StoreError::Failed { action: "ask PostgreSQL", cause },
            Self::Refused(error) => error,
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error.as_db_error() {
            Some(answered) => of_answer(answered),
            // Neither sent nor answered: the connection is gone, or there was none.
            None => Self::Unavailable(described(&error)),
        }
    }
}

impl From<PoolError> for Fault {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::from(error),
            PoolError::Timeout(_) => Self::Busy("no connection to PostgreSQL became free in time".to_owned()),
            PoolError::Closed => Self::Refused(StoreError::Closed),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// What PostgreSQL answered, by the class of its code.
fn of_answer(error: &DbError) -> Fault {
    let code = error.code().code();
    let text = format!("{} (SQLSTATE {code})", error.message());
    match code {
        "55P03" => Fault::Locked,
        // What the function `check_known` raises.
        "XK001" => Fault::Changed,
        "40001" | "40P01" => Fault::Conflict(text),
        // The statement took longer than it may; PostgreSQL has no room for another connection, and those that are open go on.
        "57014" | "53300" => Fault::Busy(text),
        // A connection is given up; resources are used up, the disk's among them; an administrator or a crash ends the connection; a
        // standby takes no writes; the system refused a read or a write; authorization changed.
        _ if ["08", "53", "58"].iter().any(|class| code.starts_with(class)) => Fault::Unavailable(text),
        // What the function `check_tables` raises: it passes with the server alone.
        "XK002" => Fault::Unavailable(format!("{}; hint: start a newer aptix-server", error.message())),
        "57P01" | "57P02" | "57P03" | "57P05" | "25006" | "25P03" | "28000" | "28P01" | "3D000" => {
            Fault::Unavailable(text)
        }
        _ => Fault::Failed(text),
    }
}

/// An error with its causes.
pub(super) fn described(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        // Some errors say what their cause does.
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use deadpool_postgres::TimeoutType;

    use super::super::health::Health;
    use super::*;

    #[test]
    fn a_full_pool_leaves_the_store_taking_writes() {
        let (health, fault) = (Health::new(), Fault::from(PoolError::Timeout(TimeoutType::Wait)));
        health.note(&fault);
        assert_eq!(health.admit(), Ok(()));
        assert!(matches!(fault.into_error(), StoreError::Busy { .. }));
        let unavailable = Fault::Unavailable("the connection is gone".to_owned());
        health.note(&unavailable);
        assert_eq!(health.admit(), Err(unavailable.into_error()));
    }
}
