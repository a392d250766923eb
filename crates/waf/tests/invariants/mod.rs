//! Invariants for any input: bodies, texts, rule files and requests. Fuzz targets and their smoke tests use them.

#![allow(dead_code, reason = "each fuzz target uses a part")]

pub mod bodies;
pub mod content;
pub mod encoded;
pub mod nested;
pub mod requests;
pub mod rules;
pub mod seeds;
pub mod texts;
pub mod turns;
