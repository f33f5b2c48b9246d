//! Lines of Aptix's own files to which lines are appended: a checksum and JSON. A line is believed in the state directory of
//! one root alone.

use aptix_engine::digest::sha256;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::workspace::roots::state::StateDir;

/// Digits of a line's checksum.
const SUM: usize = 16;

/// A line, with the newline at its end. The value has to be one that JSON can express.
pub(crate) fn encode(state: &StateDir, value: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_string(value).unwrap_or_default();
    format!("{} {json}\n", sum(state, json.as_bytes())).into_bytes()
}

/// The value of a line, which is given without its newline; `None` if the line is damaged or of another root.
pub(crate) fn decode<T: DeserializeOwned>(state: &StateDir, line: &[u8]) -> Option<T> {
    let (stated, json) = line.split_at_checked(SUM)?;
    let json = json.strip_prefix(b" ")?;
    if stated != sum(state, json).as_bytes() {
        return None;
    }
    serde_json::from_slice(json).ok()
}

fn sum(state: &StateDir, json: &[u8]) -> String {
    let mut sum = sha256(&[state.name().to_string().as_bytes(), b"\n", json].concat()).to_string();
    sum.truncate(SUM);
    sum
}
