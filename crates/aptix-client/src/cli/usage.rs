//! Arguments that cannot be parsed, as a failure.

use std::error::Error;
use std::slice;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What is wrong with the arguments, without the lines about how to use the command.
pub(super) fn failure(error: &clap::Error) -> Failure {
    Failure::new(Reason::InvalidRequest, message(error)).hint("see what `aptix help` says about the command")
}

fn message(error: &clap::Error) -> String {
    let [argument, value, subcommand] =
        [ContextKind::InvalidArg, ContextKind::InvalidValue, ContextKind::InvalidSubcommand]
            .map(|kind| words(error, kind).join(" "));
    match error.kind() {
        ErrorKind::UnknownArgument => format!("unexpected argument '{argument}' found"),
        ErrorKind::InvalidSubcommand => format!("unrecognized subcommand '{subcommand}'"),
        ErrorKind::MissingRequiredArgument => {
            format!("the following required arguments were not provided: {argument}")
        }
        // No two arguments exclude each other.
        ErrorKind::ArgumentConflict => format!("the argument '{argument}' cannot be used multiple times"),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation if value.is_empty() => {
            format!("a value is required for '{argument}' but none was supplied")
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let possible = words(error, ContextKind::ValidValue).join(", ");
            let possible = if possible.is_empty() { possible } else { format!(" [possible values: {possible}]") };
            let why = error.source().map(|why| format!(": {why}")).unwrap_or_default();
            format!("invalid value '{value}' for '{argument}'{possible}{why}")
        }
        ErrorKind::TooManyValues => {
            format!("unexpected value '{value}' for '{argument}' found; no more were expected")
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "the command needs arguments".to_owned(),
        kind => kind.as_str().unwrap_or("the arguments cannot be read").to_owned(),
    }
}

/// The words that the parser names in one role.
fn words(error: &clap::Error, kind: ContextKind) -> &[String] {
    match error.get(kind) {
        Some(ContextValue::String(word)) => slice::from_ref(word),
        Some(ContextValue::Strings(words)) => words,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::Cli;
    use super::*;
    use clap::Parser;

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (arguments, expected) in [
            (&["apply", "--nothing"][..], "unexpected argument '--nothing' found"),
            (&["aply"], "unrecognized subcommand 'aply'"),
            (&["apply", "--json", "--json"], "the argument '--json' cannot be used multiple times"),
            (&["apply", "--dry-run=yes"], "unexpected value 'yes' for '--dry-run' found; no more were expected"),
            (&["apply", "--root"], "a value is required for '--root <[NAME=]DIR>' but none was supplied"),
            (
                &["cancel"],
                "the following required arguments were not provided: --server <URL> --workspace <ID> <BATCH_ID>",
            ),
            (
                &["apply", "--dialect", "nothing"],
                "invalid value 'nothing' for '--dialect <DIALECT>': unknown dialect \"nothing\", expected one of auto",
            ),
            (
                &["convert", "--to", "nothing"],
                "invalid value 'nothing' for '--to <TO>': unknown dialect \"nothing\", expected one of line-patch, \
                 search-patch, structured-patch, git-patch, file-bundle",
            ),
            (
                &["convert", "--to", "chat"],
                "invalid value 'chat' for '--to <TO>': chat is only read, expected one of line-patch, search-patch, ",
            ),
        ] {
            let error = Cli::try_parse_from(["aptix"].iter().chain(arguments)).err().unwrap();
            let whole = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            let found = message(&error);
            assert!(found.starts_with(expected), "{found}");
            assert!(whole.starts_with(&format!("error: {found}")), "{found}: {whole}");
        }
    }
}
