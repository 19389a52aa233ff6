//! Vector: a pipeline of events that drops those that come again ([`dedupe`]), and looks keys up in a table where they
//! expire ([`table`]).

use std::collections::BTreeMap;
use std::sync::Arc;

pub mod dedupe;
pub mod table;

/// The fields of an event, or of a value: some of the kinds that Vector has.
pub type ObjectMap = BTreeMap<String, Value>;

/// The value of a field. Values of different kinds are different.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub enum Value {
    /// Text, shared by all who hold it.
    Bytes(Arc<[u8]>),
    /// A number.
    Integer(i64),
    /// Fields within the field.
    Object(ObjectMap),
    /// Nothing, which is not the same as no field.
    Null,
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().into())
    }
}

/// The method of Vector's `Dedupe`.
pub trait Transform {
    /// Returns the event, unless it came before.
    fn transform_one(&mut self, event: ObjectMap) -> Option<ObjectMap>;
}

/// What is asked of a table.
#[derive(Clone, Debug)]
pub enum Condition<'a> {
    /// The field `key` has this value.
    Equals(&'a str),
    /// Another condition, such as a range of dates.
    Other,
}

/// Why a table does not answer, as in Vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no condition.
    MissingCondition,
    /// There are several.
    OnlyOneConditionAllowed,
    /// It is another than `Equals`.
    OnlyEqualityConditionAllowed,
}

/// The method of Vector's `Table` that this table answers. (`find_table_row` is made of it.)
pub trait Table {
    /// The rows that meet the conditions: one, or none.
    ///
    /// # Errors
    /// It can answer one condition, of equality.
    fn find_table_rows(&self, conditions: &[Condition<'_>]) -> Result<Vec<ObjectMap>, Error>;
}
