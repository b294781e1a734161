// Loaded before each test file of a full run: property tests draw the same every time. Without it they draw anew.
import fc from 'fast-check'

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 1 })
