//! The address of a PostgreSQL database, as `libpq` writes it: which hosts, which database, as whom, and over which TLS.
//!
//! A password is shown nowhere: not by `Display` and `Debug`, and no part of one in an error, also where the address is
//! malformed.

mod parameters;
mod tls;
mod url;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use self::parameters::Parameters;
use self::tls::Verification;
pub use self::url::AddressError;
use self::url::Url;
use crate::store::StoreError;
use crate::store::bucket_address::BucketAddress;

/// How long a connection to one host may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection on which nothing came for this long is asked for a sign of life, and how often again.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;

/// A connection on which sent bytes are not acknowledged for this long is broken.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// How long a write may take. Each of its statements may take 30 s, and nothing in PostgreSQL bounds its commit.
const WRITE_LIMIT: Duration = Duration::from_secs(40);

/// The name that PostgreSQL lists connections under.
const APPLICATION: &str = "aptix-server";

/// A database, with everything that a connection to it takes. `Display` writes the address with `***` in the place of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    config: Config,
    /// The same for each host alone.
    hosts: Vec<Config>,
    write_limit: Duration,
    verification: Verification,
    authorities: Option<PathBuf>,
    shown: String,
    blobs: Option<BucketAddress>,
}

impl Address {
    /// Reads `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?PARAMETER=VALUE&...`, or the same with `postgresql://`.
    /// A host that begins with `/`, percent-encoded or as the parameter `host`, is the directory of a Unix socket.
    ///
    /// # Errors
    /// When it is no such address, or has a parameter that is not supported here.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let Url { user, password, mut hosts, mut database, parameters, shown } = Url::parse(text)?;
        let mut parameters = Parameters::new(parameters)?;
        let mut config = defaults();
        let user = parameters.instead_of("user", user)?;
        if let Some(user) = user {
            config.user(user);
        }
        if let Some(password) = password {
            config.password(password);
        }
        database = parameters.instead_of("dbname", database)?;
        let database = database.ok_or_else(|| {
            AddressError::new("a database after the host, as in postgres://HOST/DATABASE", "no database")
        })?;
        config.dbname(database);
        parameters.hosts(&mut hosts)?;
        if hosts.is_empty() {
            let expected = "a host, as in postgres://HOST/DATABASE or postgres:///DATABASE?host=/run/postgresql";
            return Err(AddressError::new(expected, "no host"));
        }
        let (verification, authorities) = parameters.tls(&mut config, &hosts)?;
        parameters.session(&mut config, hosts.len())?;
        parameters.sockets(&mut config)?;
        let with = |config: &mut Config, (host, port): &(String, Option<u16>)| {
            config.host(host).port(port.unwrap_or(url::PORT));
        };
        let mut each = vec![config.clone(); hosts.len()];
        each.iter_mut().zip(&hosts).for_each(|(config, host)| with(config, host));
        hosts.iter().for_each(|host| with(&mut config, host));
        Ok(Self { config, hosts: each, write_limit: WRITE_LIMIT, verification, authorities, shown, blobs: None })
    }

    /// Bounds how long a write may take; 40 s if this is not called.
    #[must_use]
    pub fn with_write_limit(self, write_limit: Duration) -> Self {
        Self { write_limit, ..self }
    }

    /// Has the store keep its blobs in a bucket. If this is not called, or with `None`, they are where the database says: in a bucket if
    /// it was opened with one before, and else in the database.
    #[must_use]
    pub fn with_blobs(self, blobs: Option<BucketAddress>) -> Self {
        Self { blobs, ..self }
    }

    /// The bucket for its blobs.
    pub(super) const fn blobs(&self) -> Option<&BucketAddress> {
        self.blobs.as_ref()
    }

    /// How long a write may take.
    pub(super) const fn write_limit(&self) -> Duration {
        self.write_limit
    }

    /// How connections to each host are made, except TLS; in the order of the address.
    pub(super) fn hosts(&self) -> &[Config] {
        &self.hosts
    }

    /// How connections are made, but for TLS.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Secures connections as `sslmode` and `sslrootcert` ask for. Reads the file of authorities.
    ///
    /// # Errors
    /// When the file cannot be read, or has no certificates.
    pub fn connector(&self) -> Result<MakeRustlsConnect, StoreError> {
        self.verification.client_config(self.authorities.as_deref()).map(MakeRustlsConnect::new)
    }
}

/// What holds where the address says nothing else.
fn defaults() -> Config {
    let mut config = Config::new();
    config
        .application_name(APPLICATION)
        .connect_timeout(CONNECT_TIMEOUT)
        .target_session_attrs(TargetSessionAttrs::ReadWrite)
        .ssl_mode(SslMode::Prefer)
        .tcp_user_timeout(UNACKNOWLEDGED)
        .keepalives_idle(KEEPALIVE_IDLE)
        .keepalives_interval(KEEPALIVE_INTERVAL)
        .keepalives_retries(KEEPALIVE_RETRIES);
    config
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Address({})", self.shown)
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::{ChannelBinding, Host};

    use super::*;

    fn parse(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    fn refused(text: &str) -> String {
        Address::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn an_address_has_hosts_a_database_a_user_and_defaults() {
        let address = parse("postgres://jo%40x:s%2Fe:c@one,two:6432,[::1]:7/da%20ta");
        let config = address.config();
        assert_eq!(config.get_user(), Some("jo@x"));
        assert_eq!(config.get_password(), Some(&b"s/e:c"[..]));
        assert_eq!(config.get_dbname(), Some("da ta"));
        let hosts = ["one", "two", "::1"].map(|host| Host::Tcp(host.to_owned()));
        assert_eq!((config.get_hosts(), config.get_ports()), (&hosts[..], &[5432, 6432, 7][..]));
        assert_eq!(config.get_application_name(), Some("aptix-server"));
        assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(5)));
        assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert_eq!(config.get_ssl_mode(), SslMode::Prefer);
        assert!(config.get_keepalives() && config.get_keepalives_retries() == Some(3));
        assert_eq!(parse("postgresql://h/d").config().get_user(), None);
    }

    #[test]
    fn parameters_take_the_place_of_parts_and_defaults() {
        let text = "postgres:///?host=/run/pg,/tmp&port=6000&dbname=d&user=u&password=p%26w&connect_timeout=9\
                    &target_session_attrs=read-write&application_name=x&keepalives=0&keepalives_idle=3&keepalives_interval=4\
                    &keepalives_count=5&tcp_user_timeout=1500&channel_binding=require&options=-csearch_path%3Ds";
        let address = parse(text);
        let config = address.config();
        assert_eq!(config.get_hosts(), ["/run/pg", "/tmp"].map(|path| Host::Unix(path.into())));
        assert_eq!(
            (config.get_ports(), config.get_dbname(), config.get_user()),
            (&[6000, 6000][..], Some("d"), Some("u"))
        );
        assert_eq!(config.get_password(), Some(&b"p&w"[..]));
        assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(9)));
        assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        let any = parse("postgres://h/d?target_session_attrs=any");
        assert_eq!(any.config().get_target_session_attrs(), TargetSessionAttrs::Any);
        assert_eq!((config.get_application_name(), config.get_keepalives()), (Some("x"), false));
        assert_eq!(config.get_keepalives_idle(), Duration::from_secs(3));
        assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_millis(1500)));
        assert_eq!(config.get_channel_binding(), ChannelBinding::Require);
        assert_eq!(config.get_options(), Some("-csearch_path=s"));
        // Over a Unix socket there is no TLS to ask for.
        assert_eq!(config.get_ssl_mode(), SslMode::Disable);
        assert_eq!(parse("postgres://%2Frun%2Fpg/d").config().get_hosts(), [Host::Unix("/run/pg".into())]);
    }

    #[test]
    fn what_is_shown_has_no_password_and_is_an_address_itself() {
        let cases = [
            ("postgres://u:s3cret@h/d?sslmode=require", "postgres://u:***@h/d?sslmode=require"),
            (
                "postgres://u@h:1,i/d?password=s3cret&connect_timeout=1",
                "postgres://u@h:1,i/d?password=***&connect_timeout=1",
            ),
            ("postgresql://h/d", "postgresql://h/d"),
            ("postgres://u:@h/d", "postgres://u:@h/d"),
        ];
        for (text, shown) in cases {
            let address = parse(text);
            assert_eq!(address.to_string(), shown);
            assert_eq!(format!("{address:?}"), format!("Address({shown})"));
            assert_eq!(parse(shown).to_string(), shown);
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_what_was_expected() {
        let cases = [
            ("mysql://h/d", "postgres://"),
            ("postgres://h", "no database"),
            ("postgres:///d", "no host"),
            ("postgres://h:port/d", "a port from 1 to 65535"),
            ("postgres://h:0/d", "a port from 1 to 65535"),
            ("postgres://[::1/d", "an address in brackets"),
            ("postgres://h/d?sslmode=allow", "found sslmode=\"allow\""),
            ("postgres://h/d?sslcert=f", "found \"sslcert\""),
            ("postgres://h/d?connect_timeout=0", "1 to 3600"),
            ("postgres://h/d?connect_timeout", "without a value"),
            ("postgres://h/d?sslmode=require&sslmode=require", "sslmode twice"),
            ("postgres://h/d?host=i", "host twice"),
            ("postgres://h/d?sslmode=verify-full", "sslrootcert=FILE"),
            ("postgres://h/d?sslrootcert=f", "sslmode=verify-full"),
            ("postgres://h/d?sslmode=verify-full&sslrootcert=system", "sslrootcert=system"),
            ("postgres://%2Frun/d?sslmode=require", "no TLS"),
            ("postgres://h/d?target_session_attrs=read-only", "read-write"),
            ("postgres://h,i/d?target_session_attrs=any", "read-write for more than one host"),
            ("postgres://h,i/d?port=1,2,3", "one port, or one for each of 2 hosts"),
            ("postgres://h%zz/d", "%"),
        ];
        for (text, said) in cases {
            let error = refused(text);
            assert!(error.starts_with("expected ") && error.contains(said), "{said} in {error}");
        }
    }

    #[test]
    fn no_part_of_a_password_is_in_an_error() {
        // Each password is HUSH, with something between that it should not have.
        for text in [
            "postgres://u:HU@SH@h/d",
            "postgres://u:HU/SH@h/d",
            "postgres://u:HU?SH=HU@h/d",
            "postgres://u:HU#SH@h/d",
            "postgres://u:HU%SH@h/d",
            "postgres://u:HU SH@h/d",
            "postgres://u:HUSH/d",
            "postgres://u:HUSH@h",
            "postgres://u:HUSH@h:x/d",
            "postgres://u:HUSH@h/d?nothing=1",
            "postgres://u@h/d?password=HU&SH=HU",
            "postgres://u@h/d?password=HU&sslmode=SH",
            "postgres://u@h/d?password=HU&SH",
            "postgres://u@h/d?password=HU@SH",
            "postgres://u:HU@h/d?password=SH",
            "postgres://u@h/d?password=HU%SH",
            "postgres://u@h/d?password=HUSH&password=HUSH",
            "postgres:/u:HUSH@h/d",
            "host=h password=HUSH",
            "HUSH",
        ] {
            let error = Address::parse(text).unwrap_err();
            for shown in [error.to_string(), format!("{error:?}")] {
                assert!(!shown.contains("HU") && !shown.contains("SH"), "{text}: {shown}");
            }
        }
    }
}
