//! The configuration that takes effect, and where each value comes from.

use std::collections::BTreeMap;
use std::fmt;

use aptix_model::id::WorkspaceId;

use super::Config;
use super::entry::{Entry, Origin};
use super::fault::Fault;
use super::keys::{Change, KEYS, Key};
use super::retention::contradiction;

/// A key with the value that takes effect.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// The name of the key; that of a workspace's key is `workspaces.ID.KEY`.
    pub name: String,
    /// The key.
    pub key: &'static str,
    /// Its value; `None` where it has none.
    pub value: Option<serde_json::Value>,
    /// Where the value comes from.
    pub origin: Origin,
}

impl fmt::Display for Setting {
    /// A line of a configuration file, with its origin as a comment.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            // Strings, numbers, truth values and lists of strings are written in TOML as in JSON.
            Some(value) => write!(out, "{} = {value} # {}", self.name, self.origin),
            None => write!(out, "# {} is not set", self.name),
        }
    }
}

/// The configuration that takes effect.
#[derive(Clone, PartialEq, Debug)]
pub struct Effective {
    /// It.
    pub config: Config,
    /// Each key of it, in the order of [`KEYS`], then those of single workspaces.
    pub settings: Vec<Setting>,
}

impl Effective {
    /// The names of the keys that another configuration sets otherwise and that only a restart changes.
    #[must_use]
    pub fn waiting_for_restart(&self, other: &Self) -> Vec<&'static str> {
        let value = |of: &Self, key: &Key| key.value(&of.config);
        // Two addresses of databases may differ in the password alone, which values do not show.
        let has_other_store = self.config.store != other.config.store;
        let differs = |key: &&Key| {
            let has_other_value = value(self, key) != value(other, key) || (has_other_store && key.name == "store");
            key.change == Change::Restart && has_other_value
        };
        KEYS.iter().filter(differs).map(|key| key.name).collect()
    }

    /// Lets the entries of highest rank take effect, and notes each whose value its key cannot have.
    pub(super) fn of(entries: &[Entry], faults: &mut Vec<Fault>) -> Self {
        for entry in entries {
            let mut scratch = Config::default();
            let mut field = (entry.key.field)(&mut scratch);
            if !field.set(&entry.given) {
                let (origin, name, found) = (entry.origin.clone(), name(entry), entry.given.to_string());
                let expected = field.expected().into_owned();
                faults.push(match field.secret_fault(&entry.given) {
                    Some(why) => Fault::Secret { origin, name, why },
                    None => Fault::Value { origin, name, found, expected },
                });
            }
        }
        let mut made = Self { config: Config::default(), settings: Vec::new() };
        let strongest = |key: &Key, workspace: Option<&WorkspaceId>| {
            let same = |entry: &&Entry| entry.key.name == key.name && entry.workspace.as_ref() == workspace;
            entries.iter().filter(same).max_by_key(|entry| entry.rank)
        };
        for key in KEYS {
            let entry = strongest(key, None);
            if let Some(entry) = entry {
                (key.field)(&mut made.config).set(&entry.given);
            }
            let origin = entry.map_or(Origin::Default, |entry| entry.origin.clone());
            made.settings.push(Setting {
                name: key.name.to_owned(),
                key: key.name,
                value: key.value(&made.config),
                origin,
            });
        }
        made.config.settle();
        // Each workspace has what holds in general, changed by its own table.
        let mut own: BTreeMap<&WorkspaceId, Config> = BTreeMap::new();
        for entry in entries {
            let Some(workspace) = &entry.workspace else { continue };
            let config = own.entry(workspace).or_insert_with(|| made.config.clone());
            (entry.key.field)(config).set(&entry.given);
            let (value, origin) = (entry.key.value(config), entry.origin.clone());
            made.settings.push(Setting { name: name(entry), key: entry.key.name, value, origin });
        }
        if faults.is_empty() {
            let of_workspaces = own.iter().map(|(workspace, own)| (Some(*workspace), &own.usual.retention));
            let all = std::iter::once((None, &made.config.usual.retention)).chain(of_workspaces);
            let origin = |name: &str| {
                let setting = made.settings.iter().find(|setting| setting.name == name);
                setting.map(|setting| setting.origin.clone())
            };
            faults.extend(all.filter_map(|(workspace, limits)| contradiction(limits, workspace, origin)));
        }
        made.config.workspaces = own.into_iter().map(|(workspace, own)| (workspace.clone(), own.usual)).collect();
        made
    }
}

/// What a key is called, with its workspace.
fn name(entry: &Entry) -> String {
    match &entry.workspace {
        // An id may have characters that a bare key has not.
        Some(workspace) => format!("workspaces.\"{workspace}\".{}", entry.key.name),
        None => entry.key.name.to_owned(),
    }
}
