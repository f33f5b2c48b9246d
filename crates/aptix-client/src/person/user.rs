//! The user of this process, as records name who applied, approved or refused a batch.

use aptix_model::actor::{Actor, ActorKind};

/// Characters of a name that are kept.
const NAME_CHARS: usize = 256;

/// The user, by the name that the environment has for them. It is a name for people: nothing depends on it.
pub(crate) fn user() -> Actor {
    let stated = |variable| std::env::var_os(variable).filter(|name| !name.is_empty());
    let name = stated("USER").or_else(|| stated("LOGNAME"));
    Actor { kind: ActorKind::Person, name: name.map(|name| name.to_string_lossy().chars().take(NAME_CHARS).collect()) }
}
