//! Behaviour of the decision point, seen from outside.

mod cases;
mod conditions;
mod default_rules;
mod files;
mod globs;
mod guards;
mod naive;
mod proofs;
mod properties;
mod shape;
mod speed;
mod support;
