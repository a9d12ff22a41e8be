// Everything is in ManualProgram: top-level code is bound to the main actor.
ManualProgram.main()
