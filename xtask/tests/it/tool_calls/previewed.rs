//! What every answer about a planned edit has to be: the same for models, as YAML, and for programs; with an end within the hour.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::answer::Answer;

/// How long a plan may be applied.
const LIFE: Duration = Duration::from_secs(60 * 60);
/// How old an answer is when it is looked at, at most.
const AGE: Duration = Duration::from_secs(10 * 60);

/// What is wrong about the preview in an answer, if it has one. Its times are so far ahead of the time of day.
pub(super) fn faulty_preview(answer: &Answer, ahead: Duration) -> Option<String> {
    let preview = answer.structured.get("preview").filter(|preview| preview.is_object())?;
    let yaml: Vec<_> = answer.text.lines().collect();
    unsaid(preview, &yaml).or_else(|| late(&answer.structured, preview, ahead))
}

/// The first key or value that lines of YAML do not have.
fn unsaid(value: &Value, yaml: &[&str]) -> Option<String> {
    match value {
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            let is_key = |line: &&str| line.trim_start_matches([' ', '-']).starts_with(&format!("{key}:"));
            let Some(at) = yaml.iter().position(is_key) else { return Some(format!("the YAML has no {key}")) };
            match value {
                Value::Object(_) | Value::Array(_) => unsaid(value, below(yaml, at)),
                scalar if is_like(yaml[at], scalar) || is_folded(below(yaml, at), scalar) => None,
                scalar => Some(format!("the YAML has {:?}, and not {scalar}", yaml[at])),
            }
        }),
        Value::Array(items) => items.iter().find_map(|item| match item {
            Value::Object(_) => unsaid(item, yaml),
            scalar if yaml.iter().any(|line| is_like(line, scalar)) => None,
            scalar => Some(format!("the YAML has no item {scalar}")),
        }),
        _ => None,
    }
}

/// The lines that belong to the key in one line.
fn below<'y, 't>(yaml: &'y [&'t str], at: usize) -> &'y [&'t str] {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_below = |line: &&&str| indent(line) > indent(yaml[at]) || line[indent(line)..].starts_with("- ");
    &yaml[at + 1..][..yaml[at + 1..].iter().take_while(is_below).count()]
}

/// Whether a line ends in a value, written plainly or quoted.
fn is_like(line: &str, scalar: &Value) -> bool {
    let plain = scalar.as_str().map_or_else(|| scalar.to_string(), str::to_owned);
    let quoted = format!("'{}'", plain.replace('\'', "''"));
    [plain, quoted, scalar.to_string()].iter().any(|text| line.ends_with(text.as_str()))
}

/// Whether lines are a text that was too long for one.
fn is_folded(lines: &[&str], scalar: &Value) -> bool {
    lines.iter().map(|line| line.trim_start()).collect::<Vec<_>>().join(" ") == scalar.as_str().unwrap_or_default()
}

/// Why a plan does not end when it should.
#[expect(clippy::disallowed_methods, reason = "a test looks when an answer came")]
fn late(structured: &Value, preview: &Value, ahead: Duration) -> Option<String> {
    let stated = preview.get("expires_at_ms")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + ahead;
    let [now, life, age] = [now, LIFE, AGE].map(|time| u64::try_from(time.as_millis()).unwrap());
    let is_right = stated.as_u64().is_some_and(|end| (now + life - age..=now + life).contains(&end));
    let is_same = structured.get("expiresAtMs") == Some(stated);
    (!is_right || !is_same).then(|| format!("it ends at {stated}, and it is {now}"))
}
