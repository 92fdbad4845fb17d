//! CustomResourceDefinitions, and the validation of custom resources.
//!
//! Everything here is pure: a CRD goes in; schemas, errors, statuses and resources come out. The life of a CRD:
//! [`DefinitionStrategy`] prepares and validates it → [`names::status`] accepts its names and establishes it →
//! [`resources`] derives the resources to serve, each with its own [`CustomStrategy`] →
//! [`names::set_terminating`] marks it while its objects are deleted.
//!
//! An object is stored in one version and served in any: [`versions`] prunes it by the schemas of both.
//!
//! Not done: conversion between versions by webhook. Custom resources are deleted by [`crate::controller`],
//! since that needs the store.

mod custom_strategy;
pub(crate) mod definition_check;
mod definition_strategy;
mod json_path;
mod name_checks;
pub mod names;
mod resources;
pub mod scale;
pub mod structural;
pub mod validate;
pub mod versions;

pub use self::{
    custom_strategy::CustomStrategy,
    definition_strategy::DefinitionStrategy,
    resources::{SchemaHistory, fingerprint, resources},
    validate::SchemaValidator,
};
