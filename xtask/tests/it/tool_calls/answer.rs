//! What a call is answered with, and what a scenario expects of it.

use serde_json::Value;

/// The answer to a call.
pub(crate) struct Answer {
    /// For programs.
    pub(crate) structured: Value,
    /// For models.
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// Whether the tool answered: an error of the protocol is no answer of a tool.
    pub(crate) is_of_tool: bool,
}

impl Answer {
    /// The code of a refusal and its detail, wherever the tool's answer has them.
    pub(crate) fn code(&self) -> String {
        let of = |value: &Value, code: &str| [code, "detail"].map(|key| value[key].as_str().unwrap_or("").to_owned());
        let words = match self.structured.get("errorCode") {
            Some(_) => of(&self.structured, "errorCode"),
            None => of(&self.structured["errors"][0], "code"),
        };
        words.join(" ").trim_end().to_owned()
    }
}

/// Where a value lacks what is expected of it, or none.
pub(crate) fn lacking(found: &Value, expected: &Value, at: &str) -> Option<String> {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected.iter().find_map(|(key, expected)| {
            let at = format!("{at}.{key}");
            match found.get(key) {
                Some(found) => lacking(found, expected, &at),
                None => Some(format!("{at} is missing")),
            }
        }),
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            let mut pairs = found.iter().zip(expected).enumerate();
            pairs.find_map(|(index, (found, expected))| lacking(found, expected, &format!("{at}.{index}")))
        }
        (Value::String(found), Value::String(expected)) if is_like(found, expected) => None,
        _ if found == expected => None,
        _ => Some(format!("{at} is {found} and not {expected}")),
    }
}

/// Whether a text is as described, `...` standing for any text.
fn is_like(found: &str, expected: &str) -> bool {
    let Some((start, after)) = expected.split_once("...") else { return found == expected };
    let Some(mut rest) = found.strip_prefix(start) else { return false };
    let (parts, last) = after.rsplit_once("...").unwrap_or(("", after));
    for part in parts.split("...") {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[test]
fn what_is_expected_of_an_answer_is_found_or_named() {
    let found = serde_json::json!({ "a": [{ "text": "one two three", "more": 1 }], "b": null });
    for (expected, lack) in [
        (r#"{ "a": [{ "text": "one...three" }], "b": null }"#, None),
        (r#"{ "a": [{ "text": "...two..." }] }"#, None),
        (r#"{ "a": [{ "text": "one...two" }] }"#, Some("answer.a.0.text is \"one two three\" and not \"one...two\"")),
        (
            r#"{ "a": [{ "text": "three...one" }] }"#,
            Some("answer.a.0.text is \"one two three\" and not \"three...one\""),
        ),
        (r#"{ "a": [] }"#, Some("answer.a is [{\"more\":1,\"text\":\"one two three\"}] and not []")),
        (r#"{ "c": null }"#, Some("answer.c is missing")),
    ] {
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(lacking(&found, &expected, "answer").as_deref(), lack);
    }
}
