//! The configuration file: every key that it sets, with its line.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use aptix_model::id::WorkspaceId;
use toml::de::{DeTable, DeValue};

use super::entry::{Entry, Origin, Rank};
use super::fault::Fault;
use super::given::Given;
use super::keys::KEYS;

/// The most bytes of a configuration file.
const FILE_BYTES: u64 = 1 << 20;

/// The table of tables for single workspaces.
const WORKSPACES: &str = "workspaces";

/// Reads a file, and notes what is wrong with it.
pub(super) fn read(path: &Path, faults: &mut Vec<Fault>) -> Vec<Entry> {
    let text = match text(path) {
        Ok(text) => text,
        Err(error) => {
            faults.push(Fault::Read { path: path.to_owned(), error });
            return Vec::new();
        }
    };
    let mut reading = Reading { path: path.into(), text: &text, entries: Vec::new(), faults };
    let (table, errors) = DeTable::parse_recoverable(&text);
    for error in &errors {
        let origin = reading.origin(error.span().unwrap_or_default());
        reading.faults.push(Fault::Parse { origin, error: error.message().to_owned() });
    }
    // What a parser makes of the rest of a broken file may not be what it says.
    if errors.is_empty() {
        reading.top(table.get_ref());
    }
    reading.entries
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES} bytes")));
    }
    Ok(text)
}

struct Reading<'a> {
    path: Arc<Path>,
    text: &'a str,
    entries: Vec<Entry>,
    faults: &'a mut Vec<Fault>,
}

impl Reading<'_> {
    fn origin(&self, span: Range<usize>) -> Origin {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Origin::File { path: Arc::clone(&self.path), line }
    }

    fn top(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            let workspaces = match value.get_ref() {
                DeValue::Table(workspaces) if key.get_ref() == WORKSPACES => workspaces,
                value => {
                    self.value(key.get_ref(), key.span(), value, None);
                    continue;
                }
            };
            for (id, value) in workspaces {
                match (id.get_ref().parse::<WorkspaceId>(), value.get_ref()) {
                    (Ok(workspace), DeValue::Table(own)) => self.table("", own, Some(&workspace)),
                    (Ok(_), other) => {
                        self.refuse(id.span(), format!("{WORKSPACES}.{}", id.get_ref()), other, "a table")
                    }
                    (Err(error), _) => {
                        let origin = self.origin(id.span());
                        self.faults.push(Fault::Workspace { origin, id: id.get_ref().to_string(), error });
                    }
                }
            }
        }
    }

    fn table(&mut self, prefix: &str, table: &DeTable<'_>, workspace: Option<&WorkspaceId>) {
        for (key, value) in table {
            self.value(&format!("{prefix}{}", key.get_ref()), key.span(), value.get_ref(), workspace);
        }
    }

    fn value(&mut self, name: &str, span: Range<usize>, value: &DeValue<'_>, workspace: Option<&WorkspaceId>) {
        let prefix = format!("{name}.");
        let key = KEYS.iter().find(|key| key.name == name);
        match (key, value) {
            (Some(key), _) if workspace.is_some() && !key.is_per_workspace => {
                let origin = self.origin(span);
                self.faults.push(Fault::NotPerWorkspace { origin, name: key.name });
            }
            (Some(key), value) => {
                let (origin, given) = (self.origin(span), given(value));
                self.entries.push(Entry { key, workspace: workspace.cloned(), rank: Rank::File, given, origin });
            }
            (None, DeValue::Table(table)) if !table.is_empty() => self.table(&prefix, table, workspace),
            (None, DeValue::Table(_)) if KEYS.iter().any(|key| key.name.starts_with(&prefix)) => {}
            (None, other) if name == WORKSPACES && workspace.is_none() => {
                self.refuse(span, name.to_owned(), other, "tables of single workspaces");
            }
            (None, _) => {
                let origin = self.origin(span);
                self.faults.push(Fault::Unknown { origin, name: name.to_owned() });
            }
        }
    }

    fn refuse(&mut self, span: Range<usize>, name: String, value: &DeValue<'_>, expected: &str) {
        let (origin, found) = (self.origin(span), given(value).to_string());
        self.faults.push(Fault::Value { origin, name, found, expected: expected.to_owned() });
    }
}

fn given(value: &DeValue<'_>) -> Given {
    match value {
        DeValue::String(text) => Given::Text(text.to_string()),
        DeValue::Integer(number) => match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Given::Whole(number),
            Err(_) => Given::Other(number.to_string()),
        },
        DeValue::Boolean(flag) => Given::Flag(*flag),
        DeValue::Float(number) => Given::Other(number.as_str().to_owned()),
        DeValue::Datetime(time) => Given::Other(time.to_string()),
        DeValue::Array(values) => {
            let texts = values.iter().map(|value| match value.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                _ => None,
            });
            texts.collect::<Option<_>>().map_or_else(|| Given::Other("a list".to_owned()), Given::List)
        }
        DeValue::Table(_) => Given::Other("a table".to_owned()),
    }
}
