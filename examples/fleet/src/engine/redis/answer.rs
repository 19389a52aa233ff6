//! PURE: decodes the answer of a script. It begins with a word that says what it is.

use redis::Value;

use crate::change::Tick;
use crate::log::{EngineError, Epoch, Head, Place};

pub(super) struct Answer {
    pub(super) word: String,
    rest: std::vec::IntoIter<Value>,
}

impl Answer {
    pub(super) fn new(value: Value) -> Result<Self, EngineError> {
        let Value::Array(values) = value else { return Err(unexpected(&value)) };
        let mut rest = values.into_iter();
        let word = rest.next().and_then(bytes).and_then(|word| String::from_utf8(word).ok());
        match word {
            Some(word) => Ok(Self { word, rest }),
            None => Err(unexpected(&Value::Nil)),
        }
    }

    /// The answer, unless it says that this is another log.
    pub(super) fn of(mut self, expected: Place) -> Result<Self, EngineError> {
        if self.word != "another" {
            return Ok(self);
        }
        let found = match self.next() {
            Value::Nil => None,
            epoch => Some(Place { epoch: self::epoch(epoch)?, position: self.number()? }),
        };
        Err(EngineError::AnotherLog { expected, found })
    }

    pub(super) fn head(mut self) -> Result<Head, EngineError> {
        Ok(Head {
            epoch: epoch(self.next())?,
            position: self.number()?,
            first: self.number()?,
            tick: Tick::try_from(self.number()?).map_err(|_| unexpected(&Value::Nil))?,
            now: self.number()?,
        })
    }

    /// The next part of the answer.
    pub(super) fn next(&mut self) -> Value {
        self.rest.next().unwrap_or(Value::Nil)
    }

    pub(super) fn number(&mut self) -> Result<u64, EngineError> {
        match self.next() {
            Value::Int(number) => u64::try_from(number).map_err(|_| unexpected(&Value::Int(number))),
            other => Err(unexpected(&other)),
        }
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, EngineError> {
        bytes(self.next()).ok_or_else(|| unexpected(&Value::Nil))
    }

    pub(super) fn values(&mut self) -> Result<Vec<Value>, EngineError> {
        match self.next() {
            Value::Array(values) => Ok(values),
            other => Err(unexpected(&other)),
        }
    }
}

pub(super) fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

pub(super) fn text(value: Value) -> Option<String> {
    bytes(value).and_then(|bytes| String::from_utf8(bytes).ok())
}

fn epoch(value: Value) -> Result<Epoch, EngineError> {
    let bytes = bytes(value).and_then(|bytes| bytes.try_into().ok());
    bytes.map(|bytes| Epoch(u64::from_le_bytes(bytes))).ok_or_else(|| unexpected(&Value::Nil))
}

pub(super) fn unexpected(value: &Value) -> EngineError {
    EngineError::Damaged(format!("the engine's answer is not as expected: {value:?}"))
}
