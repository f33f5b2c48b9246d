//! Counts the words of a text read from standard input.

mod count;

use std::io::Read;

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    println!("{}", count::words(&text));
    Ok(())
}
