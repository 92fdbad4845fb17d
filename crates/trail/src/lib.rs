//! One trace through operators and their operands.
