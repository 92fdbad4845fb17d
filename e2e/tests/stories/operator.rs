//! A platform engineer applies pipelines, and the operator makes collectors of them.

mod first;
mod restart;
mod rotation;
mod traced;
mod upgrade;
