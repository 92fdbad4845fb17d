//! A platform engineer applies pipelines, and the operator makes collectors of them.

mod change;
mod delivery;
mod first;
mod gone;
mod guarded;
mod identity;
mod missing;
mod recorder;
mod refused;
mod restart;
mod rotation;
mod scale;
mod secrecy;
mod signals;
mod slots;
mod tail;
mod traced;
mod upgrade;
