//! The parameters of an address: those of `libpq` that are supported, and nothing else.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslMode, TargetSessionAttrs};

use super::tls::Verification;
use super::url::{AddressError, Parameter, read_port};

/// Every parameter but the password.
const NAMES: [&str; 15] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "options",
    "port",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
    "tcp_user_timeout",
];

/// A user is taken from the address as well.
const USER: &str = "user";

/// The parameters of one address, by their names.
pub(super) struct Parameters(BTreeMap<String, Parameter>);

type Hosts = Vec<(String, Option<u16>)>;

impl Parameters {
    /// Refuses what is not supported.
    ///
    /// # Errors
    /// When one has another name, or is there twice.
    pub(super) fn new(all: Vec<Parameter>) -> Result<Self, AddressError> {
        let mut named = BTreeMap::new();
        for parameter in all {
            if parameter.name != USER && !NAMES.contains(&parameter.name.as_str()) {
                let found = match parameter.is_public {
                    true => format!("{:?}", parameter.name),
                    false => "another one after the password (if it belongs to that, write & as %26)".to_owned(),
                };
                let expected = format!("parameters among {USER}, password, {}", NAMES.join(", "));
                return Err(AddressError::new(expected, found));
            }
            let name = parameter.name.clone();
            if named.insert(name.clone(), parameter).is_some() {
                return Err(AddressError::new("each parameter once", format!("{name} twice")));
            }
        }
        Ok(Self(named))
    }

    fn take(&mut self, name: &str) -> Option<Parameter> {
        self.0.remove(name)
    }

    /// A part of the address that a parameter can have in its place.
    ///
    /// # Errors
    /// When both have it.
    pub(super) fn instead_of(&mut self, name: &str, part: Option<String>) -> Result<Option<String>, AddressError> {
        match (self.take(name), part) {
            (Some(_), Some(_)) => Err(AddressError::new("each part once", format!("{name} twice"))),
            (parameter, part) => Ok(parameter.map(|parameter| parameter.value).or(part)),
        }
    }

    /// The hosts and their ports, where parameters have them.
    ///
    /// # Errors
    /// When both the address and a parameter have them, or there are more ports than hosts.
    pub(super) fn hosts(&mut self, hosts: &mut Hosts) -> Result<(), AddressError> {
        if let Some(parameter) = self.take("host") {
            if !hosts.is_empty() {
                return Err(AddressError::new("each part once", "host twice"));
            }
            hosts.extend(parameter.value.split(',').map(|host| (host.to_owned(), None)));
        }
        if hosts.iter().any(|(host, _)| host.is_empty()) {
            return Err(AddressError::new("hosts with commas between", "an empty one"));
        }
        let Some(ports) = self.take("port") else { return Ok(()) };
        if hosts.iter().any(|(_, port)| port.is_some()) {
            return Err(AddressError::new("each part once", "port twice"));
        }
        let ports = ports.value.split(',').map(read_port).collect::<Result<Vec<_>, _>>()?;
        if ports.len() != 1 && ports.len() != hosts.len() {
            let expected = format!("one port, or one for each of {} hosts", hosts.len());
            return Err(AddressError::new(expected, format!("{} ports", ports.len())));
        }
        for ((_, place), port) in hosts.iter_mut().zip(ports.iter().cycle()) {
            *place = Some(*port);
        }
        Ok(())
    }

    /// How connections are secured.
    ///
    /// # Errors
    /// When the mode is not supported, or has no authorities to hold certificates against.
    pub(super) fn tls(
        &mut self,
        config: &mut Config,
        hosts: &Hosts,
    ) -> Result<(Verification, Option<PathBuf>), AddressError> {
        let modes = [
            ("disable", (SslMode::Disable, Verification::None)),
            ("prefer", (SslMode::Prefer, Verification::None)),
            ("require", (SslMode::Require, Verification::None)),
            ("verify-ca", (SslMode::Require, Verification::Authority)),
            ("verify-full", (SslMode::Require, Verification::Full)),
        ];
        let (mut mode, mut verification) =
            self.word("sslmode", &modes)?.unwrap_or((SslMode::Prefer, Verification::None));
        let authorities = self.take("sslrootcert").map(|parameter| parameter.value);
        if authorities.as_deref() == Some("system") {
            let expected = "sslrootcert=FILE with certificates in PEM, such as /etc/ssl/certs/ca-certificates.crt";
            return Err(AddressError::new(expected, "sslrootcert=system"));
        }
        if authorities.is_none() && verification != Verification::None {
            let expected = "sslrootcert=FILE, the authorities in PEM, beside sslmode=verify-ca or sslmode=verify-full";
            return Err(AddressError::new(expected, "no sslrootcert"));
        }
        if authorities.is_some() && mode != SslMode::Require {
            let expected = "sslmode=verify-full, sslmode=verify-ca or sslmode=require beside sslrootcert";
            return Err(AddressError::new(expected, "a mode that does not check the certificate"));
        }
        let is_local = |(host, _): &(String, _)| host.starts_with('/');
        if mode == SslMode::Require && hosts.iter().any(is_local) {
            let expected = "sslmode=prefer or sslmode=disable for a Unix socket";
            return Err(AddressError::new(expected, "a mode that needs TLS: a Unix socket has no TLS"));
        }
        if hosts.iter().all(is_local) {
            mode = SslMode::Disable;
        }
        // As `libpq` does: with authorities their signature is required.
        if authorities.is_some() && verification == Verification::None {
            verification = Verification::Authority;
        }
        config.ssl_mode(mode);
        Ok((verification, authorities.map(PathBuf::from)))
    }

    /// What is asked of the session.
    ///
    /// # Errors
    /// When a value is none of its parameter, or several hosts could be a primary and standbys that lag behind it.
    pub(super) fn session(&mut self, config: &mut Config, hosts: usize) -> Result<(), AddressError> {
        let attributes = [("read-write", TargetSessionAttrs::ReadWrite), ("any", TargetSessionAttrs::Any)];
        if let Some(attributes) = self.word("target_session_attrs", &attributes)? {
            if hosts > 1 && attributes == TargetSessionAttrs::Any {
                let expected = "target_session_attrs=read-write for more than one host";
                return Err(AddressError::new(expected, "target_session_attrs=any"));
            }
            config.target_session_attrs(attributes);
        }
        let bindings = [
            ("disable", ChannelBinding::Disable),
            ("prefer", ChannelBinding::Prefer),
            ("require", ChannelBinding::Require),
        ];
        if let Some(binding) = self.word("channel_binding", &bindings)? {
            config.channel_binding(binding);
        }
        if let Some(name) = self.take("application_name") {
            config.application_name(name.value);
        }
        if let Some(options) = self.take("options") {
            config.options(options.value);
        }
        Ok(())
    }

    /// How sockets are held.
    ///
    /// # Errors
    /// When a value is none of its parameter.
    pub(super) fn sockets(&mut self, config: &mut Config) -> Result<(), AddressError> {
        if let Some(seconds) = self.number("connect_timeout", 3600)? {
            config.connect_timeout(Duration::from_secs(seconds.into()));
        }
        if let Some(is_kept_alive) = self.word("keepalives", &[("0", false), ("1", true)])? {
            config.keepalives(is_kept_alive);
        }
        if let Some(seconds) = self.number("keepalives_idle", 86_400)? {
            config.keepalives_idle(Duration::from_secs(seconds.into()));
        }
        if let Some(seconds) = self.number("keepalives_interval", 86_400)? {
            config.keepalives_interval(Duration::from_secs(seconds.into()));
        }
        if let Some(count) = self.number("keepalives_count", 100)? {
            config.keepalives_retries(count);
        }
        if let Some(milliseconds) = self.number("tcp_user_timeout", 86_400_000)? {
            config.tcp_user_timeout(Duration::from_millis(milliseconds.into()));
        }
        Ok(())
    }

    /// A parameter that has one of a few values.
    fn word<T: Copy>(&mut self, name: &str, values: &[(&str, T)]) -> Result<Option<T>, AddressError> {
        let Some(parameter) = self.take(name) else { return Ok(None) };
        match values.iter().find(|(word, _)| *word == parameter.value) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let words = values.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
                Err(AddressError::new(format!("{name} as one of {words}"), found(&parameter)))
            }
        }
    }

    /// A parameter that is a whole number from 1.
    fn number(&mut self, name: &str, most: u32) -> Result<Option<u32>, AddressError> {
        let Some(parameter) = self.take(name) else { return Ok(None) };
        let number = parameter.value.parse().ok().filter(|number| (1..=most).contains(number));
        let refused = || AddressError::new(format!("{name} as a whole number from 1 to {most}"), found(&parameter));
        number.ok_or_else(refused).map(Some)
    }
}

/// A value, unless it may be a part of a password.
fn found(Parameter { name, value, is_public }: &Parameter) -> String {
    if *is_public { format!("{name}={value:?}") } else { "another value".to_owned() }
}
