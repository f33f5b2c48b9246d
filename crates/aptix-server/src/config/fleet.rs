//! How the server lives beside others on one database.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::field::Parsed;
use crate::fleet::FleetOptions;

/// What is configured about the other servers on the same database.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FleetConfig {
    /// Where they reach this server; without it where it listens, unless that is every address of the machine.
    pub address: Option<ServerAddress>,
    /// The authorities of their certificates, in PEM.
    pub ca: Option<PathBuf>,
}

/// The authorities of the other servers' certificates cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("could not read fleet.ca, {}: {cause}; expected certificates in PEM", path.display())]
pub struct NoAuthorities {
    path: PathBuf,
    cause: std::io::Error,
}

impl FleetConfig {
    /// What the server holds itself to, once it listens there, with or without TLS. Reads the authorities.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn options(&self, listening: SocketAddr, is_secure: bool) -> Result<FleetOptions, NoAuthorities> {
        let scheme = if is_secure { "https" } else { "http" };
        let here = || (!listening.ip().is_unspecified()).then(|| format!("{scheme}://{listening}"));
        let address = self.address.as_ref().map(|address| address.0.clone()).or_else(here);
        let read = |path: &PathBuf| {
            let path = path.clone();
            std::fs::read(&path).map_err(|cause| NoAuthorities { path, cause })
        };
        let authorities = self.ca.as_ref().map(read).transpose()?;
        Ok(FleetOptions { address, authorities, ..FleetOptions::default() })
    }
}

/// Where a server is reached: a scheme, a host, and perhaps a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerAddress(String);

impl Parsed for ServerAddress {
    const EXPECTED: &'static str = "`https://HOST:PORT`, or with `http`";

    fn parse(text: &OsStr) -> Option<Self> {
        let text = text.to_str()?;
        let authority = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
        let parsed: tonic::codegen::http::uri::Authority = authority.parse().ok()?;
        (!parsed.host().is_empty() && !authority.contains('@')).then(|| Self(text.to_owned()))
    }

    fn text(&self) -> Cow<'_, str> {
        self.0.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host_and_nothing_more() {
        for good in ["https://a.example:7420", "http://10.0.0.5:7420", "https://[::1]:7420", "https://a.example"] {
            assert!(ServerAddress::parse(OsStr::new(good)).is_some(), "{good}");
        }
        for bad in ["a.example:7420", "https://", "ftp://a.example", "https://me@a.example", "https://a.example/path"] {
            assert!(ServerAddress::parse(OsStr::new(bad)).is_none(), "{bad}");
        }
    }

    #[test]
    fn without_an_address_it_is_reached_where_it_listens_unless_that_is_everywhere() {
        let config = FleetConfig::default();
        let address =
            |listening: &str, is_secure| config.options(listening.parse().unwrap(), is_secure).unwrap().address;
        assert_eq!(address("10.0.0.5:7420", true).as_deref(), Some("https://10.0.0.5:7420"));
        assert_eq!(address("[::1]:7420", false).as_deref(), Some("http://[::1]:7420"));
        assert_eq!(address("0.0.0.0:7420", true), None);
        let address = ServerAddress::parse(OsStr::new("https://a.example:1"));
        let config = FleetConfig { address, ca: None };
        let options = config.options("0.0.0.0:7420".parse().unwrap(), true).unwrap();
        assert_eq!(options.address.as_deref(), Some("https://a.example:1"));
    }
}
