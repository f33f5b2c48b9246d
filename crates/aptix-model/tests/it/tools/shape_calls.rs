//! Arguments generated from the schemas in each provider's shape, natural and strict, against the parsers.
//!
//! A call that means something is parsed. Any other one may be refused for its meaning (an id that is none, a change without
//! the lines that its operation needs), never for a type or an unknown key: the provider promised its schema.

use aptix_model::documents::PartialDocument;
use aptix_model::failure::Failure;
use aptix_model::reason::Detail;
use aptix_model::tools::catalogue::TOOLS;
use aptix_model::tools::roots::Roots;
use aptix_model::tools::shape::Shape;
use aptix_model::tools::tool::Tool;
use jsonschema::Validator;
use proptest::prelude::*;
use proptest::strategy::Union;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::Value;

use super::shapes::standard;
use super::values::{Making, values};

/// Cases of each shape and kind of values. `APTIX_SEED` repeats the run of a seed that a failure names.
const CASES: u32 = 1024;

/// A tool in one shape.
#[derive(Clone, Copy, Debug)]
struct Shaped {
    shape: Shape,
    is_strict: bool,
}

/// Every shape, natural and strict.
fn shapes() -> impl Iterator<Item = Shaped> {
    Shape::ALL.into_iter().flat_map(|shape| [false, true].map(|is_strict| Shaped { shape, is_strict }))
}

/// Arguments without the nulls that a strict schema has for those that are not given.
pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let given = object.iter().filter(|(_, value)| !value.is_null());
            Value::Object(given.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Checks what the parser answers to arguments that a provider's schema accepts.
fn check(tool: &Tool, natural: &Validator, arguments: &Value, making: Making) -> Result<(), TestCaseError> {
    let parsed = tool.parse(&arguments.to_string(), &Roots::default());
    // A bound that the provider cannot enforce is dropped from its schema, and enforced by the parser.
    let is_bound_broken = !natural.is_valid(&without_nulls(arguments));
    let Err(PartialDocument { part, .. }) = parsed else { return Ok(()) };
    let told = || format!("{} {arguments}: {:?}", tool.name, part.failures);
    prop_assert!(making == Making::Any || is_bound_broken, "{}", told());
    for Failure { detail, field, .. } in &part.failures {
        let is_of_shape =
            matches!(detail, Some(Detail::Type | Detail::UnknownField | Detail::Json | Detail::DuplicateKey));
        prop_assert!(!is_of_shape, "{}", told());
        let needs_field = matches!(detail, Some(Detail::Missing | Detail::UnexpectedField | Detail::Number));
        prop_assert!(!needs_field || field.is_some(), "{}", told());
    }
    Ok(())
}

fn play(shaped: Shaped, making: Making, seed: u64) {
    let schemas: Vec<_> = TOOLS.iter().map(|tool| standard(shaped.shape, tool, shaped.is_strict)).collect();
    let accepts: Vec<_> = schemas.iter().map(|schema| jsonschema::validator_for(schema).unwrap()).collect();
    let natural = TOOLS.iter().map(|tool| Value::Object(tool.input_schema()));
    let natural: Vec<_> = natural.map(|schema| jsonschema::validator_for(&schema).unwrap()).collect();
    let calls = schemas
        .iter()
        .enumerate()
        .map(|(index, schema)| values(schema, "", making).prop_map(move |arguments| (index, arguments)).boxed());
    let config =
        Config { cases: CASES, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..Config::default() };
    let outcome = TestRunner::new(config).run(&Union::new(calls), |(index, arguments)| {
        let tool = &TOOLS[index];
        prop_assert!(accepts[index].is_valid(&arguments), "the generator: {} {arguments}", tool.name);
        check(tool, &natural[index], &arguments, making)
    });
    if let Err(error) = outcome {
        panic!("{shaped:?}, {making:?}, APTIX_SEED={seed}: {error}");
    }
}

/// Another seed in each run, or the one that is asked for.
#[expect(clippy::disallowed_methods, reason = "the seed of a failed run, to repeat it by hand")]
fn seed() -> u64 {
    let asked = std::env::var("APTIX_SEED").ok().map(|seed| seed.parse().unwrap());
    asked.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64)
}

#[test]
fn what_means_something_in_a_shape_is_parsed() {
    shapes().for_each(|shaped| play(shaped, Making::Meaningful, seed()));
}

#[test]
fn what_a_shape_accepts_is_refused_for_its_meaning_alone() {
    shapes().for_each(|shaped| play(shaped, Making::Any, seed()));
}
