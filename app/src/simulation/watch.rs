//! What looks on while a simulation runs: stops it in time, and notes what it touches when an access list is wanted.

use crate::evm::{
    InspectedContext, Inspector,
    interpreter::{
        InstructionResult, Interpreter,
        bytecode::opcode,
        interpreter::EthInterpreter,
        interpreter_types::{InputsTr, Jumps},
    },
};
use alloy_primitives::{Address, B256, U256};
use std::collections::{BTreeMap, BTreeSet};

/// Instructions between two looks at the clock: some ten microseconds.
const STEPS_BETWEEN_LOOKS: u32 = 2048;

/// Addresses and slots, in order.
pub(super) type Touched = BTreeMap<Address, BTreeSet<B256>>;

pub(super) struct Watch<'a> {
    stop: &'a (dyn Fn() -> bool + Sync),
    steps: u32,
    stopped: bool,
    touched: Option<Touched>,
}

impl<'a> Watch<'a> {
    pub(super) const fn new(stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            stop,
            steps: 0,
            stopped: false,
            touched: None,
        }
    }

    /// Notes addresses and slots as well.
    pub(super) const fn noting(stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            stop,
            steps: 0,
            stopped: false,
            touched: Some(Touched::new()),
        }
    }

    pub(super) const fn stopped(&self) -> bool {
        self.stopped
    }

    /// What the last run touched.
    pub(super) fn take_touched(&mut self) -> Touched {
        self.touched.replace(Touched::new()).unwrap_or_default()
    }
}

impl<'a> Inspector<InspectedContext<'a>, EthInterpreter> for Watch<'_> {
    fn step(
        &mut self,
        interpreter: &mut Interpreter<EthInterpreter>,
        _: &mut InspectedContext<'a>,
    ) {
        self.steps = self.steps.wrapping_add(1);
        if self.stopped || (self.steps.is_multiple_of(STEPS_BETWEEN_LOOKS) && (self.stop)()) {
            // Every outer frame meets this too, so the whole call unwinds at once.
            self.stopped = true;
            interpreter.halt(InstructionResult::OutOfGas);
            return;
        }
        if let Some(touched) = &mut self.touched {
            note(touched, interpreter);
        }
    }
}

fn note(touched: &mut Touched, interpreter: &Interpreter<EthInterpreter>) {
    let operand = |index| interpreter.stack.peek(index).ok();
    let address = |word: U256| Address::from_word(B256::from(word));
    match interpreter.bytecode.opcode() {
        opcode::SLOAD | opcode::SSTORE => {
            if let Some(slot) = operand(0) {
                let contract = interpreter.input.target_address();
                touched
                    .entry(contract)
                    .or_default()
                    .insert(B256::from(slot));
            }
        }
        opcode::BALANCE
        | opcode::EXTCODESIZE
        | opcode::EXTCODECOPY
        | opcode::EXTCODEHASH
        | opcode::SELFDESTRUCT => {
            if let Some(word) = operand(0) {
                touched.entry(address(word)).or_default();
            }
        }
        opcode::CALL | opcode::CALLCODE | opcode::DELEGATECALL | opcode::STATICCALL => {
            if let Some(word) = operand(1) {
                touched.entry(address(word)).or_default();
            }
        }
        _ => {}
    }
}
