//! The parts of an address, before they mean anything: percent-encoding, and what may be shown of it.

use std::fmt::Write as _;

/// The port of a host that names none.
pub(super) const PORT: u16 = 5432;

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Why a text is no address of a database. It has no part of a password.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected {expected}, found {found}")]
pub struct AddressError {
    expected: String,
    found: String,
}

impl AddressError {
    pub(super) fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into() }
    }
}

/// A parameter, decoded.
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) value: String,
    /// Whether an error may have it. One that comes after a password may be a part of that.
    pub(super) is_public: bool,
}

/// The parts of an address, decoded.
pub(super) struct Url {
    pub(super) user: Option<String>,
    pub(super) password: Option<Vec<u8>>,
    pub(super) hosts: Vec<(String, Option<u16>)>,
    pub(super) database: Option<String>,
    /// All but the password.
    pub(super) parameters: Vec<Parameter>,
    /// The address as it was given, with `***` in the place of the password.
    pub(super) shown: String,
}

impl Url {
    /// Takes an address apart.
    ///
    /// # Errors
    /// When its form is another one.
    pub(super) fn parse(text: &str) -> Result<Self, AddressError> {
        let after = |scheme: &&'static str| Some((*scheme, text.strip_prefix(scheme)?));
        let Some((scheme, rest)) = SCHEMES.iter().find_map(after) else {
            let expected = "an address such as postgres://USER:PASSWORD@HOST/DATABASE";
            return Err(AddressError::new(expected, "a text that does not begin with postgres:// or postgresql://"));
        };
        refuse_reserved(rest)?;
        let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = before.split_once('/').unwrap_or((before, ""));
        let (credentials, hosts) = match authority.split_once('@') {
            Some((credentials, hosts)) => (Some(credentials), hosts),
            None => (None, authority),
        };
        let mut shown = scheme.to_owned();
        let (user, mut password) = read_credentials(credentials, &mut shown)?;
        shown.push_str(hosts);
        if before.contains('/') {
            shown.push('/');
            shown.push_str(database);
        }
        let parameters = read_parameters(query, &mut password, &mut shown)?;
        let database = Some(utf8(database, "the database")?).filter(|database| !database.is_empty());
        Ok(Self { user, password, hosts: read_hosts(hosts)?, database, parameters, shown })
    }
}

/// Refuses characters that make it uncertain where the password ends. They are not looked at further.
fn refuse_reserved(rest: &str) -> Result<(), AddressError> {
    let expected = "special characters of the user, the password and other parts percent-encoded (@ as %40, / as %2F, ? as %3F, \
                    # as %23, a space as %20)";
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let found = if rest.contains('#') {
        "a #"
    } else if rest.contains(|c: char| c.is_whitespace() || c.is_control()) {
        "white space or a control character"
    } else if authority.matches('@').count() > 1 {
        "more than one @ before the host"
    } else if rest.get(authority.len()..).unwrap_or_default().contains('@') {
        "an @ after the host"
    } else {
        return Ok(());
    };
    Err(AddressError::new(expected, found))
}

type Credentials = (Option<String>, Option<Vec<u8>>);

fn read_credentials(credentials: Option<&str>, shown: &mut String) -> Result<Credentials, AddressError> {
    let Some(credentials) = credentials else { return Ok((None, None)) };
    let (user, password) = match credentials.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (credentials, None),
    };
    shown.push_str(user);
    shown.push_str(match password {
        Some("") => ":",
        Some(_) => ":***",
        None => "",
    });
    shown.push('@');
    let password = password.filter(|password| !password.is_empty());
    let password = password.map(|password| decode(password, "the password")).transpose()?;
    Ok((Some(utf8(user, "the user")?).filter(|user| !user.is_empty()), password))
}

fn read_hosts(hosts: &str) -> Result<Vec<(String, Option<u16>)>, AddressError> {
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    hosts.split(',').map(read_host).collect()
}

fn read_host(text: &str) -> Result<(String, Option<u16>), AddressError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let split = rest.split_once(']').filter(|(_, port)| port.is_empty() || port.starts_with(':'));
            let malformed =
                || AddressError::new("an address in brackets, as in [::1]:5432", "a bracket in another place");
            let (host, port) = split.ok_or_else(malformed)?;
            (host, port.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.filter(|port| !port.is_empty()).map(read_port).transpose()?;
    Ok((utf8(host, "the host")?, port))
}

/// Reads a port. What is none may be a password without the `@` after it, and is not shown.
pub(super) fn read_port(text: &str) -> Result<u16, AddressError> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| AddressError::new("a port from 1 to 65535 after the host's colon", "something else"))
}

/// Reads the parameters, and moves the password out of them.
fn read_parameters(
    query: &str,
    password: &mut Option<Vec<u8>>,
    shown: &mut String,
) -> Result<Vec<Parameter>, AddressError> {
    let mut parameters = Vec::new();
    let mut is_public = true;
    for (index, part) in query.split('&').filter(|part| !part.is_empty()).enumerate() {
        let expected = "parameters as NAME=VALUE with & between";
        let (name, value) = part.split_once('=').ok_or_else(|| AddressError::new(expected, "one without a value"))?;
        let separator = if index == 0 { '?' } else { '&' };
        if name == "password" {
            if password.replace(decode(value, "the password")?).is_some() {
                return Err(AddressError::new("one password", "password twice"));
            }
            // Writing to a string does not fail.
            let _ = write!(shown, "{separator}password=***");
            is_public = false;
            continue;
        }
        let _ = write!(shown, "{separator}{part}");
        let (name, value) = (utf8(name, "a parameter's name")?, utf8(value, "a parameter's value")?);
        parameters.push(Parameter { name, value, is_public });
    }
    Ok(parameters)
}

fn utf8(text: &str, what: &str) -> Result<String, AddressError> {
    let expected = || AddressError::new(format!("UTF-8 in {what}"), "other bytes");
    String::from_utf8(decode(text, what)?).map_err(|_| expected())
}

/// Decodes `%XX`.
fn decode(text: &str, what: &str) -> Result<Vec<u8>, AddressError> {
    let mut pieces = text.split('%');
    let mut out = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let digits = piece.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|byte| *byte != 0);
        let Some(byte) = byte else {
            let expected = format!("two hexadecimal digits after each % in {what} (a % itself as %25)");
            return Err(AddressError::new(expected, "something else"));
        };
        out.push(byte);
        out.extend_from_slice(piece.get(2..).unwrap_or_default().as_bytes());
    }
    Ok(out)
}
