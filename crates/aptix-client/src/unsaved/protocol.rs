//! The protocol between editors and the agent: one JSON object a line, each answered by one. docs/reference/editor-buffers.md
//! specifies it.

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// The version that is spoken.
pub const VERSION: u32 = 1;
/// Most bytes of a line, without its line feed: a text of the most bytes, each written as six.
pub const LINE_BYTES: usize = 8 << 20;

/// What an editor asks for.
#[derive(Deserialize, Debug)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(crate) enum Request {
    /// Begins the connection.
    Hello { version: u32 },
    /// A file has unsaved text.
    Announce { path: Option<String>, doc_path: Option<String>, text: Option<String> },
    /// A file has no unsaved text any more.
    Withdraw { path: Option<String>, doc_path: Option<String> },
    /// Which buffers the root has: so many lines follow the answer.
    List {},
}

/// What an editor calls a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FileName {
    /// An absolute path.
    Path(String),
    /// A lower-case key that begins with the root's name.
    DocPath(String),
}

impl FileName {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Path(name) | Self::DocPath(name) => name,
        }
    }

    /// The one of both that is given.
    pub(crate) fn one_of(path: Option<String>, doc_path: Option<String>) -> Result<Self, Failure> {
        match (path, doc_path) {
            (Some(path), None) => Ok(Self::Path(path)),
            (None, Some(doc_path)) => Ok(Self::DocPath(doc_path)),
            _ => Err(Failure::new(Reason::InvalidRequest, "expected one of path and docPath")
                .hint("name the file by its absolute path, or by its docPath")),
        }
    }
}

/// The answer to a request.
#[derive(Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    /// Whether it was carried out.
    pub(crate) ok: bool,
    /// Of a hello: the version spoken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u32>,
    /// Of a hello: the root whose socket it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) root: Option<String>,
    /// Of an announcement: whether the text differs from the file on disk, so that the buffer is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unsaved: Option<bool>,
    /// Of a list: how many lines follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<usize>,
    /// Of a refusal: its reason in the catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Of a refusal: what was expected and found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Of a refusal: what to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

/// A buffer in a list.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    /// The path in the root, as the editor named it.
    pub(crate) path: String,
    /// The real path there.
    pub(crate) real_path: String,
    /// The text; absent if it is not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

impl Answer {
    /// Carried out, and there is nothing to say.
    pub(crate) fn done() -> Self {
        Self { ok: true, ..Self::default() }
    }

    pub(crate) fn refused(failure: Failure) -> Self {
        Self {
            reason: Some(failure.reason.code().to_owned()),
            message: Some(failure.message),
            hint: failure.hint,
            ..Self::default()
        }
    }
}

/// One line of the protocol.
pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    // Strings, numbers and booleans alone: they can always be written.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Reads a request.
pub(crate) fn request(line: &[u8]) -> Result<Request, Failure> {
    let text = std::str::from_utf8(line).map_err(|error| {
        Failure::new(Reason::NotText, format!("the line is not UTF-8: byte {} is wrong", error.valid_up_to()))
            .hint("send JSON in UTF-8, one object a line")
    })?;
    serde_json::from_str(text).map_err(|_| {
        let message = match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => "the line is no request of this version: an op or a key is not known, or a value has another type"
                .to_owned(),
            Err(error) => format!("the line is not one JSON object: column {} is wrong", error.column()),
        };
        Failure::new(Reason::InvalidRequest, message).hint(
            "send one object a line whose op is hello, announce, withdraw or list, with the keys of that op alone",
        )
    })
}

/// Why a connection is not taken up.
pub(crate) fn not_greeted(version: Option<u32>) -> Failure {
    let message = match version {
        Some(version) => format!("version {version} is not spoken here, version {VERSION} is"),
        None => "the first line is no hello".to_owned(),
    };
    Failure::new(Reason::InvalidRequest, message).hint(format!(r#"begin with {{"op":"hello","version":{VERSION}}}"#))
}

/// Why a line is not read to its end.
pub(crate) fn too_long() -> Failure {
    let message = format!("the line has more than {LINE_BYTES} bytes");
    Failure::new(Reason::TooLarge, message).hint("announce a file of so much text without text")
}
