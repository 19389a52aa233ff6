//! Puts all mutants of a file into it, each behind a switch.
//!
//! An operator becomes a `match` of the mutant that is switched on, with an arm for each mutant and one for the code as it
//! was. Only that one has the mutants of the operands: so the text grows by as much as there are mutants. Lines keep their
//! numbers, because rustc names them in errors.

use std::cmp::Reverse;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::list::{Genre, Mutant};

/// Code that has mutants.
struct Place {
    range: Range<usize>,
    what: What,
}

enum What {
    /// A binary operator between two operands, and what replaces it.
    Binary { operands: [Range<usize>; 2], mutants: Vec<(u32, String)> },
    /// A unary operator before an operand, which a mutant deletes.
    Unary { operand: Range<usize>, mutant: u32 },
    /// The beginning of a function, and what it returns instead.
    Body { mutants: Vec<(u32, String)> },
    /// The last expression of a function that returns an iterator. (Another type could not be returned instead.)
    Iterator { mutant: u32 },
    /// The end of a pattern whose arm a mutant deletes.
    Arm { mutant: u32 },
    /// The guard of an arm, and the mutants by which it is always true, and never.
    Guard { always: Option<u32>, never: Option<u32> },
    /// A struct expression with a base, and the fields that mutants delete.
    Fields { mutants: Vec<(u32, Range<usize>)> },
}

/// The text of a file with its mutants.
pub struct Rewritten {
    pub text: String,
    /// Where the code of each mutant is.
    pub mutants: Vec<(u32, Range<usize>)>,
    /// Those that are not in it, because they are in constants, or would not compile.
    pub left: Vec<u32>,
}

/// Puts these mutants of a file into its text.
pub fn rewrite(text: &str, mutants: &[Mutant]) -> Rewritten {
    let file = syn::parse_file(text).expect("the source is valid");
    let mut finder = Finder { mutants, places: Vec::new(), placed: Vec::new(), constants: 0 };
    finder.visit_file(&file);
    let Finder { mut places, placed, .. } = finder;
    // What is around other places comes before them.
    places.sort_by_key(|place| (place.range.start, !place.range.is_empty(), Reverse(place.range.end)));
    let mut writer = Writer { source: text, places: &places, text: String::new(), mutants: Vec::new() };
    writer.write(0..text.len(), 0);
    let left = mutants.iter().map(|mutant| mutant.number).filter(|number| !placed.contains(number)).collect();
    Rewritten { text: writer.text, mutants: writer.mutants, left }
}

fn range(code: &impl Spanned) -> Range<usize> {
    code.span().byte_range()
}

/// Whether the expression is part of a chain of conditions with `let`, which no `match` can contain.
fn has_let(code: &syn::Expr) -> bool {
    match code {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

struct Finder<'a> {
    mutants: &'a [Mutant],
    places: Vec<Place>,
    placed: Vec<u32>,
    /// How many constant contexts the code is in.
    constants: usize,
}

impl Finder<'_> {
    /// The mutants of this kind whose code begins here: their numbers and texts. None in a constant.
    fn at(&mut self, start: usize, genre: Genre) -> Vec<(u32, String)> {
        let is_here = |mutant: &&Mutant| mutant.range.start == start && mutant.genre == genre && self.constants == 0;
        let here: Vec<_> = self.mutants.iter().filter(is_here).collect();
        self.placed.extend(here.iter().map(|mutant| mutant.number));
        here.into_iter().map(|mutant| (mutant.number, mutant.replacement.clone())).collect()
    }

    fn add(&mut self, range: Range<usize>, what: What) {
        self.places.push(Place { range, what });
    }

    fn in_constant(&mut self, is_constant: bool, visit: impl FnOnce(&mut Self)) {
        self.constants += usize::from(is_constant);
        visit(self);
        self.constants -= usize::from(is_constant);
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let Some(first) = block.stmts.first() else { return };
        let start = range(first).start;
        let mut mutants = self.at(start, Genre::FnValue);
        let is_opaque =
            matches!(&signature.output, syn::ReturnType::Type(_, of) if matches!(**of, syn::Type::ImplTrait(_)));
        if is_opaque {
            let empty = mutants.iter().find(|(_, text)| text.contains("iter::empty")).map(|&(number, _)| number);
            if let (Some(mutant), Some(syn::Stmt::Expr(last, None))) = (empty, block.stmts.last()) {
                self.add(range(last), What::Iterator { mutant });
                mutants.retain(|&(number, _)| number != mutant);
            }
        }
        self.add(start..start, What::Body { mutants });
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_const(&mut self, code: &'ast syn::ItemConst) {
        self.in_constant(true, |this| visit::visit_item_const(this, code));
    }

    fn visit_item_static(&mut self, code: &'ast syn::ItemStatic) {
        self.in_constant(true, |this| visit::visit_item_static(this, code));
    }

    fn visit_impl_item_const(&mut self, code: &'ast syn::ImplItemConst) {
        self.in_constant(true, |this| visit::visit_impl_item_const(this, code));
    }

    fn visit_trait_item_const(&mut self, code: &'ast syn::TraitItemConst) {
        self.in_constant(true, |this| visit::visit_trait_item_const(this, code));
    }

    fn visit_expr_const(&mut self, code: &'ast syn::ExprConst) {
        self.in_constant(true, |this| visit::visit_expr_const(this, code));
    }

    fn visit_type(&mut self, code: &'ast syn::Type) {
        self.in_constant(true, |this| visit::visit_type(this, code));
    }

    fn visit_expr_repeat(&mut self, code: &'ast syn::ExprRepeat) {
        self.visit_expr(&code.expr);
        self.in_constant(true, |this| this.visit_expr(&code.len));
    }

    fn visit_item_fn(&mut self, code: &'ast syn::ItemFn) {
        self.in_constant(code.sig.constness.is_some(), |this| {
            this.function(&code.sig, &code.block);
            visit::visit_item_fn(this, code);
        });
    }

    fn visit_impl_item_fn(&mut self, code: &'ast syn::ImplItemFn) {
        self.in_constant(code.sig.constness.is_some(), |this| {
            this.function(&code.sig, &code.block);
            visit::visit_impl_item_fn(this, code);
        });
    }

    fn visit_trait_item_fn(&mut self, code: &'ast syn::TraitItemFn) {
        if let Some(block) = &code.default {
            self.function(&code.sig, block);
        }
        visit::visit_trait_item_fn(self, code);
    }

    fn visit_expr_binary(&mut self, code: &'ast syn::ExprBinary) {
        if !has_let(&code.left) && !has_let(&code.right) {
            let mutants = self.at(range(&code.op).start, Genre::BinaryOperator);
            if !mutants.is_empty() {
                let operands = [range(&code.left), range(&code.right)];
                self.add(range(code), What::Binary { operands, mutants });
            }
        }
        visit::visit_expr_binary(self, code);
    }

    fn visit_expr_unary(&mut self, code: &'ast syn::ExprUnary) {
        if let [(mutant, _)] = self.at(range(&code.op).start, Genre::UnaryOperator)[..] {
            self.add(range(code), What::Unary { operand: range(&code.expr), mutant });
        }
        visit::visit_expr_unary(self, code);
    }

    fn visit_arm(&mut self, code: &'ast syn::Arm) {
        if let [(mutant, _)] = self.at(range(code).start, Genre::MatchArm)[..] {
            let end = range(&code.pat).end;
            self.add(end..end, What::Arm { mutant });
        }
        if let Some((_, guard)) = &code.guard {
            let mutants = self.at(range(guard).start, Genre::MatchArmGuard);
            let of = |text: &str| mutants.iter().find(|(_, other)| other == text).map(|&(number, _)| number);
            if !mutants.is_empty() {
                self.add(range(guard), What::Guard { always: of("true"), never: of("false") });
            }
        }
        visit::visit_arm(self, code);
    }

    fn visit_expr_struct(&mut self, code: &'ast syn::ExprStruct) {
        let mut mutants = Vec::new();
        for start in code.fields.iter().map(|field| range(field).start) {
            for (number, _) in self.at(start, Genre::StructField) {
                let mutant = self.mutants.iter().find(|mutant| mutant.number == number).expect("it is in the list");
                mutants.push((number, mutant.range.clone()));
            }
        }
        if !mutants.is_empty() {
            self.add(range(code), What::Fields { mutants });
        }
        visit::visit_expr_struct(self, code);
    }
}

struct Writer<'a> {
    source: &'a str,
    places: &'a [Place],
    text: String,
    mutants: Vec<(u32, Range<usize>)>,
}

impl Writer<'_> {
    /// Writes this part of the source. The places inside are among those from `next` on.
    fn write(&mut self, part: Range<usize>, mut next: usize) {
        let (mut at, places) = (part.start, self.places);
        while let Some(place) = places.get(next).filter(|place| place.range.end <= part.end) {
            let Range { start, end } = place.range;
            if start >= at {
                self.text.push_str(&self.source[at..start]);
                self.write_place(place, next + 1);
                at = end;
            }
            next += 1;
        }
        self.text.push_str(&self.source[at..part.end]);
    }

    fn write_place(&mut self, Place { range, what }: &Place, next: usize) {
        match what {
            What::Body { mutants } => {
                for (number, value) in mutants {
                    self.text.push_str(&format!("if crate::mutant::is({number}) {{ "));
                    self.mutant(*number, &format!("return {value};"));
                    self.text.push_str(" } ");
                }
            }
            What::Arm { mutant } => self.mutant(*mutant, &format!(" if !crate::mutant::is({mutant})")),
            What::Guard { always, never } => {
                self.text.push('(');
                if let Some(number) = *always {
                    self.mutant(number, &format!("crate::mutant::is({number}) || "));
                }
                if let Some(number) = *never {
                    self.mutant(number, &format!("!crate::mutant::is({number}) && "));
                }
                self.text.push('(');
                self.write(range.clone(), next);
                self.text.push_str("))");
            }
            What::Iterator { mutant } => {
                self.text.push('(');
                self.write(range.clone(), next);
                self.text.push(')');
                self.mutant(*mutant, &format!(".filter(|_| !crate::mutant::is({mutant}))"));
            }
            What::Binary { operands: [left, right], mutants } => {
                let [left, right] = [left, right].map(|operand| self.in_a_line(operand.clone()));
                let of = |(number, operator): &(u32, String)| (*number, format!("({left}) {operator} ({right})"));
                self.write_alternatives(range, mutants.iter().map(of).collect(), next);
            }
            What::Unary { operand, mutant } => {
                let operand = self.in_a_line(operand.clone());
                self.write_alternatives(range, vec![(*mutant, operand)], next);
            }
            What::Fields { mutants } => {
                let without = |(number, field): &(u32, Range<usize>)| {
                    let before = self.in_a_line(range.start..field.start);
                    (*number, before + " " + &self.in_a_line(field.end..range.end))
                };
                self.write_alternatives(range, mutants.iter().map(without).collect(), next);
            }
        }
    }

    fn write_alternatives(&mut self, range: &Range<usize>, alternatives: Vec<(u32, String)>, next: usize) {
        let numbers: Vec<u32> = alternatives.iter().map(|&(number, _)| number).collect();
        self.text.push_str(&format!("(match crate::mutant::active(&{numbers:?}) {{ "));
        for (number, code) in alternatives {
            self.text.push_str(&format!("{number} => "));
            self.mutant(number, &format!("{{ {code} }} "));
        }
        self.text.push_str("_ => { ");
        self.write(range.clone(), next);
        self.text.push_str(" } })");
    }

    fn mutant(&mut self, number: u32, code: &str) {
        let start = self.text.len();
        self.text.push_str(code);
        self.mutants.push((number, start..self.text.len()));
    }

    /// This part of the source without comments and in one line.
    fn in_a_line(&self, part: Range<usize>) -> String {
        let without_comment = |line: &str| line.trim_start().split("//").next().unwrap_or_default().to_owned();
        self.source[part].lines().map(without_comment).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mutant that replaces this code, which the source has once.
    fn mutant(number: u32, source: &str, code: &str, genre: Genre, replacement: &str) -> Mutant {
        assert_eq!(source.matches(code).count(), 1, "{code}");
        let start = source.find(code).expect("it is there");
        let (name, file, range) = (String::new(), String::new(), start..start + code.len());
        Mutant { number, name, file, genre, range, replacement: replacement.to_owned() }
    }

    #[test]
    fn only_the_code_as_it_was_has_the_mutants_of_its_operands() {
        let source = "fn f(a: u32, b: u32) -> u32 { a * 2\n + b }";
        let mutants = [
            mutant(1, source, "a * 2\n + b", Genre::FnValue, "7"),
            mutant(2, source, "+", Genre::BinaryOperator, "-"),
            mutant(3, source, "*", Genre::BinaryOperator, "/"),
        ];
        let Rewritten { text, mutants, left } = rewrite(source, &mutants);
        assert_eq!(
            text,
            "fn f(a: u32, b: u32) -> u32 { if crate::mutant::is(1) { return 7; } \
             (match crate::mutant::active(&[2]) { 2 => { (a * 2) - (b) } _ => { \
             (match crate::mutant::active(&[3]) { 3 => { (a) / (2) } _ => { a * 2 } })\n + b } }) }"
        );
        let code: Vec<_> = mutants.into_iter().map(|(number, range)| (number, &text[range])).collect();
        assert_eq!(code, [(1, "return 7;"), (2, "{ (a * 2) - (b) } "), (3, "{ (a) / (2) } ")]);
        assert!(left.is_empty());
    }

    #[test]
    fn arms_guards_and_fields_have_switches() {
        let source = "fn f(a: u32) -> S { match a { 1 => x(), n if n > 2 => S { b: !a, ..s }, _ => y() } }";
        let mutants = [
            mutant(1, source, "1 => x(),", Genre::MatchArm, ""),
            mutant(2, source, "n > 2", Genre::MatchArmGuard, "true"),
            mutant(3, source, "n > 2", Genre::MatchArmGuard, "false"),
            mutant(4, source, "b: !a,", Genre::StructField, ""),
            mutant(5, source, "!", Genre::UnaryOperator, ""),
        ];
        let text = rewrite(source, &mutants).text;
        for code in [
            "1 if !crate::mutant::is(1) => x()",
            "n if (crate::mutant::is(2) || !crate::mutant::is(3) && (n > 2)) =>",
            "4 => { S {  ..s } } _ => { S { b: (match crate::mutant::active(&[5]) { 5 => { a } _ => { !a } }), ..s } } })",
        ] {
            assert!(text.contains(code), "{text}");
        }
    }

    #[test]
    fn what_is_constant_or_has_a_let_is_left() {
        let source = "const A: u32 = 1 + 2; fn f() { if a && let Some(b) = c { d() } }";
        let mutants =
            [mutant(1, source, "+", Genre::BinaryOperator, "-"), mutant(2, source, "&&", Genre::BinaryOperator, "||")];
        let Rewritten { text, left, .. } = rewrite(source, &mutants);
        assert_eq!((&text[..], left), (source, vec![1, 2]));
    }
}
