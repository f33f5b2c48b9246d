//! Where a configuration comes from: the command line, the environment and a file.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::effective::Effective;
use super::entry::{Entry, Origin, Rank};
use super::fault::{Fault, Faults};
use super::file;
use super::given::Given;
use super::keys::{KEYS, PREFIX};

/// Whether Kubernetes or Docker set a variable by itself, for a service whose name begins with `aptix-server`.
fn is_of_service(name: &str, value: &OsStr) -> bool {
    let is_address = value.to_str().is_some_and(|value| value.starts_with("tcp://") || value.starts_with("udp://"));
    ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT_"].iter().any(|part| name.contains(part))
        || (name.ends_with("_PORT") && is_address)
}

/// The sources of a configuration. The command line wins over the environment, and that over the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sources {
    /// Keys that options of the command line set, with their values.
    pub command_line: Vec<(&'static str, OsString)>,
    /// Variables of the environment. One that is empty counts as not set.
    pub environment: Vec<(OsString, OsString)>,
    /// The configuration file.
    pub file: Option<PathBuf>,
}

impl Sources {
    /// Reads the configuration. A key that there is not is refused, not ignored.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(&self) -> Result<Effective, Faults> {
        let mut faults = Vec::new();
        let mut entries = self.file.as_deref().map(|path| file::read(path, &mut faults)).unwrap_or_default();
        for (variable, value) in &self.environment {
            entries.extend(of_variable(variable, value, &mut faults));
        }
        for (name, value) in &self.command_line {
            let key = KEYS.iter().find(|key| key.name == *name);
            let given = Given::Word(value.clone());
            let entry =
                |key| Entry { key, workspace: None, rank: Rank::CommandLine, given, origin: Origin::CommandLine };
            entries.extend(key.map(entry));
        }
        let effective = Effective::of(&entries, &mut faults);
        faults.extend(effective.config.contradictions().map(|why| Fault::Together { why }));
        if faults.is_empty() { Ok(effective) } else { Err(Faults::new(faults)) }
    }
}

/// The value that a variable gives for a key.
fn of_variable(variable: &OsStr, value: &OsStr, faults: &mut Vec<Fault>) -> Option<Entry> {
    let name = variable.to_str().filter(|_| !value.is_empty())?;
    let entry = |key, rank| {
        let origin = Origin::Environment(name.to_owned());
        Some(Entry { key, workspace: None, rank, given: Given::Word(value.to_owned()), origin })
    };
    if let Some(key) = KEYS.iter().find(|key| key.general == Some(name)) {
        return entry(key, Rank::General);
    }
    if let Some(key) = KEYS.iter().find(|key| key.variable() == name) {
        return entry(key, Rank::Environment);
    }
    if name.starts_with(PREFIX) && !is_of_service(name, value) {
        faults.push(Fault::UnknownVariable { variable: name.to_owned() });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, LISTEN};
    use crate::dispatcher::approvals::Approval;
    use std::path::Path;
    use std::time::Duration;

    /// Reads a configuration from a file with this text, variables, and options.
    fn read(text: &str, variables: &[(&str, &str)], options: &[(&'static str, &str)]) -> Result<Effective, Faults> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file.as_file(), text.as_bytes()).unwrap();
        let environment = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let command_line = options.iter().map(|(name, value)| (*name, (*value).into())).collect();
        Sources { command_line, environment, file: Some(file.path().to_owned()) }.read()
    }

    fn faults(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
        let faults = read(text, variables, &[]).expect_err("it has faults");
        let named = |fault: &Fault| {
            let fault = fault.to_string();
            fault.split_once(".tmp").map_or(fault.clone(), |_| fault.split_once(':').unwrap().1.to_owned())
        };
        faults.iter().map(named).collect()
    }

    #[test]
    fn the_command_line_wins_over_the_environment_that_over_the_file_and_that_over_the_defaults() {
        let text = "listen = '0.0.0.0:1'\ndata_dir = 'a'\nheartbeat_seconds = 2\nlog = 'debug'";
        let variables = [
            ("APTIX_SERVER_LISTEN", "0.0.0.0:2"),
            ("APTIX_SERVER_DATA_DIR", "b"),
            ("APTIX_LOG", "trace"),
            ("APTIX_LOG_FORMAT", "json"),
            ("APTIX_SERVER_CALLS", ""),
        ];
        let effective = read(text, &variables, &[("data_dir", "c")]).unwrap();
        let config = &effective.config;
        assert_eq!((config.listen.port(), config.data_dir.as_path()), (2, Path::new("c")));
        assert_eq!(config.options.dispatch.heartbeat, Duration::from_secs(2));
        let origin = |name: &str| effective.settings.iter().find(|it| it.name == name).unwrap().origin.to_string();
        assert_eq!(origin("listen"), "environment APTIX_SERVER_LISTEN");
        assert_eq!(origin("data_dir"), "command line");
        assert!(origin("heartbeat_seconds").ends_with(":3"), "{}", origin("heartbeat_seconds"));
        // What all programs read counts where the server's own configuration does not decide.
        assert!(origin("log").ends_with(":4"), "{}", origin("log"));
        assert_eq!(origin("log_format"), "environment APTIX_LOG_FORMAT");
        assert_eq!(origin("calls"), "default");
        let config = read("", &[], &[]).unwrap().config;
        assert_eq!(config, Config::default());
        assert_eq!(config.listen, LISTEN);
    }

    #[test]
    fn a_total_is_divided_unless_its_parts_are_set() {
        let calls = |text: &str, variables: &[(&str, &str)]| read(text, variables, &[]).unwrap().config.options.calls;
        assert_eq!((calls("calls = 4", &[]).caller, calls("calls = 4", &[]).connection), (3, 2));
        let parts = calls("calls_per_caller = 1", &[("APTIX_SERVER_CALLS", "8")]);
        assert_eq!((parts.total, parts.caller, parts.connection), (8, 1, 4));
        let connections = read("connections = 8", &[], &[]).unwrap().config.options.connections;
        assert_eq!((connections.caller, connections.connection), (6, 1));
    }

    #[test]
    fn a_workspace_has_what_holds_in_general_unless_its_table_says_otherwise() {
        let text = "approval = 'deletions'\n[workspaces.a]\napproval = 'always'\n[workspaces.b]\n";
        let approvals = read(text, &[], &[]).unwrap().config.approvals();
        assert_eq!(approvals.usual, Approval::Deletions);
        assert_eq!(approvals.workspaces.values().copied().collect::<Vec<_>>(), [Approval::Always]);
    }

    #[test]
    fn everything_that_is_wrong_is_named_at_once_with_its_place() {
        let text = "lisen = '0.0.0.0:1'\nheartbeat_seconds = 0\ncalls = -1\nslow_seconds = '3'\napproval = 'sometimes'\n\
                    [workspaces.'a b']\napproval = 'always'\n[workspaces.c]\ncalls = 3\naproval = 'never'\n[nothing]\n\
                    [listen]\nport = 3\n";
        let variables = [
            ("APTIX_SERVER_LISTN", "x"),
            ("APTIX_SERVER_FOO", "x"),
            ("APTIX_SERVER_CALLS", "many"),
            // Of services called `aptix-server` and `aptix-server-metrics`.
            ("APTIX_SERVER_PORT", "tcp://10.0.0.1:7420"),
            ("APTIX_SERVER_SERVICE_HOST", "10.0.0.1"),
            ("APTIX_SERVER_METRICS_PORT", "tcp://10.0.0.1:9420"),
            ("APTIX_SERVER_METRICS_PORT_9420_TCP_PROTO", "tcp"),
            ("APTIX_SERVER_METRICS_SERVICE_PORT_HTTP", "9420"),
        ];
        let found = faults(text, &variables);
        let expected = [
            "3: calls is -1, expected 1 to 1,000,000",
            "5: approval is \"sometimes\", expected `never`, `deletions`, `sensitive` or `always`",
            "2: heartbeat_seconds is 0, expected 1 to 3,600",
            "4: slow_seconds is \"3\", expected 1 to 3,600",
            "1: there is no key lisen; hint: listen is one",
            "6: workspaces has \"a b\"",
            "9: calls cannot be set for one workspace",
            "10: there is no key aproval; hint: approval is one",
            "11: there is no key nothing",
            "12: listen is a table, expected address and port",
            "environment: APTIX_SERVER_LISTN sets no key; hint: APTIX_SERVER_LISTEN does",
            "environment: APTIX_SERVER_FOO sets no key; hint: `aptix-server check-config` without it prints all keys",
            "environment APTIX_SERVER_CALLS: calls is \"many\", expected 1 to 1,000,000",
        ];
        for expected in expected {
            assert!(found.iter().any(|found| found.starts_with(expected)), "{expected} in {found:#?}");
        }
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        assert!(faults("workspaces = 3", &[])[0].contains("workspaces is 3"));
        assert!(faults("a = [\nb = 'c\n", &[]).len() > 1, "a file that is no TOML is named with each of its errors");
        let missing = Sources { file: Some("/nonexistent/file".into()), ..Sources::default() }.read().unwrap_err();
        assert!(missing.to_string().contains("/nonexistent/file"), "{missing}");
    }
}
