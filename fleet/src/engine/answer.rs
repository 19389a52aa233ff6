//! PURE: decodes the answer of a script. It begins with a word that says what it is.

use redis::Value;

use super::wire;
use crate::change::Tick;
use crate::log::{Chain, EngineError, Epoch, Head, Place};

pub(super) struct Answer {
    pub(super) word: String,
    rest: std::vec::IntoIter<Value>,
}

impl Answer {
    pub(super) fn new(value: Value) -> Result<Self, EngineError> {
        let Value::Array(values) = value else { return Err(unexpected(&value)) };
        let mut rest = values.into_iter();
        match rest.next().and_then(text) {
            Some(word) => Ok(Self { word, rest }),
            None => Err(unexpected(&Value::Nil)),
        }
    }

    /// The answer, unless it says that the script has refused.
    pub(super) fn of(mut self, known: Option<Place>, latest: u64) -> Result<Self, EngineError> {
        match (&*self.word, known) {
            ("another", Some(expected)) => {
                let found = match self.next() {
                    Value::Nil => None,
                    value => Some(Place { epoch: epoch(value)?, position: self.number()?, chain: self.chain()? }),
                };
                Err(EngineError::AnotherLog { expected, found })
            }
            ("gap", _) => Err(EngineError::Gap { position: self.number()?, first: self.number()? }),
            ("waits", _) => Err(EngineError::Waits(String::from_utf8_lossy(&self.bytes()?).into_owned())),
            ("clock", _) => Err(EngineError::Clock { now: self.number()?, latest }),
            _ => Ok(self),
        }
    }

    pub(super) fn head(mut self) -> Result<Head, EngineError> {
        let place = Place { epoch: epoch(self.next())?, position: self.number()?, chain: self.chain()? };
        Ok(Head {
            place,
            first: self.number()?,
            tick: Tick::try_from(self.number()?).map_err(|_| unexpected(&Value::Nil))?,
            live: self.number()?,
            now: self.number()?,
            foreign: self.number()?,
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

    fn chain(&mut self) -> Result<Chain, EngineError> {
        wire::chain(&self.bytes()?).ok_or_else(|| unexpected(&Value::Nil))
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
