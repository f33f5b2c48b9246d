//! The library as its example uses it.

#[path = "../../examples/embed.rs"]
mod example;

#[test]
fn the_example_applies_and_undoes() {
    example::main().unwrap();
}
