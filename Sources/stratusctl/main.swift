import StratusControl

ControlProgram.main()
