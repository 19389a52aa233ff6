//! The list of mutants that `cargo mutants --list --json` prints.

use std::ops::Range;

use serde_json::Value;

/// What a mutant changes, in cargo-mutants' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

/// A change of the code.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Its place in the list, from 1 on.
    pub number: u32,
    pub name: String,
    pub file: String,
    pub genre: Genre,
    /// The code that is replaced, in bytes of its file.
    pub range: Range<usize>,
    pub replacement: String,
}

/// Reads the list. `source` returns the text of a file.
pub fn read(json: &str, source: impl Fn(&str) -> String) -> Vec<Mutant> {
    let list: Vec<Value> = serde_json::from_str(json).expect("cargo-mutants writes a list");
    let numbers = 1..;
    list.iter().zip(numbers).map(|(value, number)| mutant(value, number, &source)).collect()
}

fn mutant(value: &Value, number: u32, source: impl Fn(&str) -> String) -> Mutant {
    let text = |name: &str| value[name].as_str().expect("it is a text").to_owned();
    let file = text("file");
    let source = source(&file);
    let offset = |end: &str| {
        let [line, column] = ["line", "column"].map(|of| value["span"][end][of].as_u64().expect("a number") as usize);
        let before: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
        before + source[before..].chars().take(column - 1).map(char::len_utf8).sum::<usize>()
    };
    let genre = match &text("genre")[..] {
        "FnValue" => Genre::FnValue,
        "BinaryOperator" => Genre::BinaryOperator,
        "UnaryOperator" => Genre::UnaryOperator,
        "MatchArm" => Genre::MatchArm,
        "MatchArmGuard" => Genre::MatchArmGuard,
        "StructField" => Genre::StructField,
        other => panic!("cargo-mutants has a new kind of mutants: {other}"),
    };
    Mutant {
        number,
        name: text("name"),
        file,
        genre,
        range: offset("start")..offset("end"),
        replacement: if text("replacement") == "()" { String::new() } else { text("replacement") },
    }
}
